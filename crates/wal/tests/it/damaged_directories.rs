//! Every file of a log's directory, missing, older, truncated, swapped with another, or with a bit
//! turned over, one and two at a time: the log is right, or refused by name.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use holdfast_io::fake::{FakeFiles, Mood, Random};
use holdfast_io::{Files, OpenHow};
use holdfast_wal::{FileFault, Lsn, OpenError, ReplayError, repair_at, verify_at};

use crate::support::{
    SMALL, WorkLog, bytes_of, factor, new_log, open, place, put_bytes, records, works,
};

/// Damaged directories for each log.
const PER_LOG: u64 = 100;

/// A log, as it was at two moments.
struct Victim {
    older: FakeFiles,
    files: FakeFiles,
    checkpoint: Lsn,
    below: u32,
    records: u32,
    /// How many records a watermark covers, if the log was not closed.
    covered: u32,
    closed: bool,
    names: Vec<String>,
}

/// What happens to a file.
#[derive(Clone, Debug)]
enum Damage {
    Missing(String),
    Older(String),
    Truncated(String, u64),
    Swapped(String, String),
    Flipped(String, u64),
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Right,
    RefusedAtOpen,
    RefusedAtRead,
}

fn copy(files: &FakeFiles) -> FakeFiles {
    files.after_power_cut_in(Mood::KeepAll, 0)
}

fn append(log: &WorkLog, from: u32, more: u32) -> Vec<Lsn> {
    works(from..from + more).iter().map(|w| log.append_durable(w).unwrap().end()).collect()
}

fn victim(seed: u64) -> Victim {
    let mut random = Random::new(seed);
    let (files, log) = new_log(seed);
    let first = 200 + random.below(900) as u32;
    let mut ends = append(&log, 0, first);
    let below = 1 + random.below(u64::from(first) - 1) as u32;
    log.checkpoint(ends[below as usize - 1]).unwrap();
    log.close().unwrap();
    drop(log);
    let older = copy(&files);
    let (log, _) = open(&files).unwrap();
    let more = 200 + random.below(900) as u32;
    ends.extend(append(&log, first, more));
    let below = below + random.below(u64::from(more)) as u32;
    log.checkpoint(ends[below as usize - 1]).unwrap();
    ends.extend(append(&log, first + more, 3));
    let (records, closed) = (ends.len() as u32, random.chance(70));
    if closed {
        log.close().unwrap();
    }
    let files = copy(&files);
    drop(log);
    let entries = files.read_dir("".as_ref()).unwrap().into_iter();
    let names = entries.map(|entry| String::from_utf8(entry.name).unwrap()).collect();
    let covered = if closed { records } else { records - 1 };
    let checkpoint = ends[below as usize - 1];
    Victim { older, files, checkpoint, below, records, covered, closed, names }
}

impl Victim {
    fn damage(&self, random: &mut Random) -> Damage {
        let name = |random: &mut Random| {
            self.names[random.below(self.names.len() as u64) as usize].clone()
        };
        let (one, other) = (name(random), name(random));
        let bytes = self.files.metadata(one.as_ref()).unwrap().size_bytes;
        match random.below(5) {
            0 => Damage::Missing(one),
            // An older end of a log that nobody closed is a moment that it had.
            1 if self.closed => Damage::Older(one),
            1 | 2 => match random.below(3) {
                0 => Damage::Truncated(one, bytes - 1),
                1 => Damage::Truncated(one, 0),
                _ => Damage::Truncated(one, random.below(bytes)),
            },
            3 => Damage::Swapped(one, other),
            _ => Damage::Flipped(one, random.below(bytes * 8)),
        }
    }

    fn strike(&self, image: &FakeFiles, damage: &Damage) {
        let there = |name: &str| image.metadata(name.as_ref()).is_ok();
        match damage {
            Damage::Missing(name) if there(name) => image.remove_file(name.as_ref()).unwrap(),
            Damage::Older(name) if self.older.metadata(name.as_ref()).is_ok() => {
                put_bytes(image, name, &bytes_of(&self.older, name));
            }
            Damage::Truncated(name, bytes) if there(name) => {
                let how = OpenHow { write: true, ..OpenHow::default() };
                image.open(name.as_ref(), how).unwrap().set_len(*bytes).unwrap();
            }
            Damage::Swapped(one, other) if there(one) && there(other) => {
                image.exchange(one.as_ref(), other.as_ref()).unwrap();
            }
            Damage::Flipped(name, bit) if there(name) => drop(image.flip_bit(name.as_ref(), *bit)),
            _ => {}
        }
    }

    fn judge(&self, image: &FakeFiles) -> Result<Outcome, String> {
        let (log, recovery) = match open(image) {
            Ok(opened) => opened,
            Err(error) => {
                return is_named(&error)
                    .then_some(Outcome::RefusedAtOpen)
                    .ok_or_else(|| format!("refused without a name: {error:?}"));
            }
        };
        if recovery.checkpoint != self.checkpoint {
            return Err(format!("the checkpoint is {}", recovery.checkpoint));
        }
        match records(&log) {
            Ok(found) => self.compare(&found).map(|()| Outcome::Right),
            Err(ReplayError::Damaged { .. } | ReplayError::DamagedRecord { .. }) => {
                Ok(Outcome::RefusedAtRead)
            }
            Err(error) => Err(format!("read without a name: {error:?}")),
        }
    }

    fn compare(&self, found: &[crate::support::Work]) -> Result<(), String> {
        let end = self.below + found.len() as u32;
        let whole = found == works(self.below..end.min(self.records));
        match whole && end >= self.covered {
            true => Ok(()),
            false => Err(format!("{} records from {} on", found.len(), self.below)),
        }
    }

    /// A repair keeps what can be read, and makes nothing up.
    fn repair(&self, image: &FakeFiles) -> Result<bool, String> {
        let to = FakeFiles::new(1);
        let _ = verify_at(&place(image), &mut |_| {});
        if repair_at(&place(image), Some(&place(&to)), &mut |_| {}).is_err() {
            return Ok(false);
        }
        let (log, _) = open(&to).map_err(|error| format!("what was repaired: {error:?}"))?;
        let kept = records(&log).map_err(|error| format!("what was repaired: {error:?}"))?;
        let known = |found: &crate::support::Work| {
            found.id < self.records && *found == crate::support::work(found.id)
        };
        let in_order = kept.windows(2).all(|two| two[0].id < two[1].id);
        (in_order && kept.iter().all(known)).then_some(true).ok_or_else(|| "made up".to_owned())
    }
}

fn is_named(error: &OpenError) -> bool {
    matches!(
        error,
        OpenError::File { .. }
            | OpenError::MissingSegment { .. }
            | OpenError::ForeignFile { .. }
            | OpenError::Corrupt { .. }
            | OpenError::OtherVersion { .. }
            | OpenError::Label(_)
    )
}

/// Says how to do it again.
struct Told<'a>(u64, &'a [Damage]);

impl fmt::Display for Told<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told(seed, damages) = self;
        write!(out, "{damages:?}; replay: HOLDFAST_SEED={seed} ")?;
        write!(out, "cargo test -p holdfast-wal --test it every_file")
    }
}

fn seeds() -> std::ops::Range<u64> {
    let seed = std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok());
    seed.map_or(0..10 * factor(), |seed: u64| seed..seed + 1)
}

#[test]
fn every_file_of_a_directory_can_be_damaged_and_the_log_is_right_or_refused_by_name() {
    let mut outcomes: BTreeMap<(u64, Outcome), u64> = BTreeMap::new();
    let (mut kept, mut lost) = (0, 0);
    for seed in seeds() {
        let victim = victim(seed);
        let mut random = Random::new(seed);
        for number in 0..PER_LOG {
            // Two at a time may hit the frames and the watermark of a log that was not closed.
            let count = if victim.closed { 1 + number % 2 } else { 1 };
            let damages: Vec<_> = (0..count).map(|_| victim.damage(&mut random)).collect();
            let told = Told(seed, &damages);
            let image = copy(&victim.files);
            damages.iter().for_each(|damage| victim.strike(&image, damage));
            let spoilt = copy(&image);
            let judged = catch_unwind(AssertUnwindSafe(|| victim.judge(&image)));
            let judged = judged.unwrap_or_else(|_| panic!("it panicked: {told}"));
            let outcome = judged.unwrap_or_else(|why| panic!("{why}: {told}"));
            *outcomes.entry((count, outcome)).or_default() += 1;
            if outcome != Outcome::Right && number % 4 < 2 {
                let repaired = catch_unwind(AssertUnwindSafe(|| victim.repair(&spoilt)));
                let repaired = repaired.unwrap_or_else(|_| panic!("a repair panicked: {told}"));
                match repaired.unwrap_or_else(|why| panic!("{why}: {told}")) {
                    true => kept += 1,
                    false => lost += 1,
                }
            }
        }
    }
    println!("damages at once, outcome, directories: {outcomes:?}");
    println!("{kept} repaired, {lost} not to be repaired, none wrong, no panic");
    assert!(outcomes.len() >= 4 && kept > 10 * lost);
}

/// A log that nobody closed, and that has just begun another segment; and the name of that.
fn victim_behind_a_border(seed: u64) -> (Victim, String) {
    let mut random = Random::new(seed);
    let (files, log) = new_log(seed);
    let number = 1 + random.below(3);
    let border = Lsn(number * SMALL.segment_bytes);
    let mut records = 0;
    while append(&log, records, 1)[0] <= border {
        records += 1;
    }
    let more = 1 + random.below(4) as u32;
    append(&log, records, more);
    records += more;
    let files = copy(&files);
    drop(log);
    let entries = files.read_dir("".as_ref()).unwrap().into_iter();
    let names = entries.map(|entry| String::from_utf8(entry.name).unwrap()).collect();
    let (older, checkpoint, covered) = (FakeFiles::new(seed), Lsn(0), records - 1);
    let victim =
        Victim { older, files, checkpoint, below: 0, records, covered, closed: false, names };
    (victim, format!("segment-{number:08}"))
}

/// No seal says where this log ends: a damaged frame with nothing behind it looks like an end, so
/// what is behind it has to be there.
fn lacks_a_segment_behind_a_damaged_bit(seed: u64) {
    let (victim, last) = victim_behind_a_border(seed);
    let mut random = Random::new(seed);
    let names: Vec<_> = victim.names.iter().filter(|it| it.starts_with("segment-")).collect();
    for number in 0..PER_LOG {
        let hit = names[random.below(names.len() as u64) as usize];
        let bits = 8 * victim.files.metadata(hit.as_ref()).unwrap().size_bytes;
        // The last frames of a segment most of all.
        let bit = bits - 1 - random.below(bits >> (number % 8));
        let damages = [Damage::Missing(last.clone()), Damage::Flipped(hit.clone(), bit)];
        let image = copy(&victim.files);
        damages.iter().for_each(|damage| victim.strike(&image, damage));
        victim.judge(&image).unwrap_or_else(|why| panic!("{why}: {}", Told(seed, &damages)));
    }
}

#[test]
fn every_file_behind_a_damaged_bit_is_missed_if_it_may_have_had_something() {
    seeds().for_each(lacks_a_segment_behind_a_damaged_bit);
}

#[test]
#[should_panic(expected = "records from")]
fn a_record_that_is_lost_would_be_noticed() {
    let mut victim = victim(1);
    victim.records += 1;
    victim.covered = victim.records;
    victim.judge(&copy(&victim.files)).unwrap();
}

#[test]
fn both_catalogues_gone_is_told_by_name() {
    let victim = victim(2);
    let image = copy(&victim.files);
    for name in ["catalogue", "catalogue.copy"] {
        victim.strike(&image, &Damage::Missing(name.to_owned()));
    }
    let refused = open(&image).map(drop);
    let Err(OpenError::File { name, fault }) = refused else { panic!("{refused:?}") };
    assert_eq!((name.as_str(), fault), ("catalogue", FileFault::Missing));
}

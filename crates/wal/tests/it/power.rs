//! The power is cut at every I/O, and the disk tears, loses and reorders what was not synced.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use holdfast_io::fake::{FakeFiles, Mood, Random, Sectors};
use holdfast_wal::format::MessagePack;
use holdfast_wal::{Compression, CreateError, Log, Lsn, Options, Padding};

use crate::sealed::sealed;
use crate::support::{SMALL, Work, factor, place, work};

/// What a program knows of its log.
#[derive(Clone, Default)]
pub(crate) struct Known {
    /// Records below this number were waited for.
    durable: u32,
    /// Records below this number are not needed any more, for sure.
    checkpoint: u32,
    /// Where checkpoints may be, and the record that follows.
    checkpoints: BTreeMap<Lsn, u32>,
    /// The numbers that may follow the last record: sets end before them.
    set_ends: BTreeSet<u32>,
    options: Options,
}

impl Known {
    pub(crate) fn of_nothing() -> Known {
        Known::of_nothing_with(SMALL)
    }

    fn of_nothing_with(options: Options) -> Known {
        let checkpoints = [(Lsn(0), 0)].into();
        let mut known = Known { checkpoints, options, ..Known::default() };
        known.set_ends.insert(0);
        known
    }

    /// Makes the log, or opens the one that is there, and compares it with what is known.
    fn open(&mut self, files: &FakeFiles) -> Result<Log<Work, MessagePack>, Box<dyn Error>> {
        match Log::<Work, MessagePack>::create_at(&place(files), &self.options) {
            Ok(()) | Err(CreateError::Exists) => {}
            Err(error) => return Err(error.into()),
        }
        let (log, recovery) = Log::open_at(place(files), &self.options)?;
        let first = self.checkpoints[&recovery.checkpoint];
        assert!(first >= self.checkpoint, "{first}, after a checkpoint at {}", self.checkpoint);
        let mut next = first;
        for entry in log.iter() {
            assert!(entry?.record == work(next), "in order, unchanged");
            next += 1;
        }
        assert!(next >= self.durable, "{next}, and {} was waited for", self.durable);
        assert!(self.set_ends.contains(&next), "half a set: {next}");
        self.set_ends.split_off(&(next + 1));
        (self.durable, self.checkpoint) = (next, first);
        Ok(log)
    }

    /// Appends a set, and perhaps waits for it, and perhaps needs it no more.
    fn step(
        &mut self,
        log: &Log<Work, MessagePack>,
        random: &mut Random,
    ) -> Result<(), Box<dyn Error>> {
        let first = *self.set_ends.last().expect("0 is there");
        let next = first + 1 + random.below(4) as u32;
        let set: Vec<Work> = (first..next).map(work).collect();
        let ticket = log.append_all(&set)?;
        self.set_ends.insert(next);
        if random.chance(30) {
            ticket.wait()?;
            self.durable = next;
        }
        if random.chance(8) {
            self.checkpoints.insert(ticket.end(), next);
            log.checkpoint(ticket.end())?;
            (self.durable, self.checkpoint) = (next, next);
        }
        Ok(())
    }
}

/// Opens, works, closes; an error if the power is cut on the way.
pub(crate) fn life(
    files: &FakeFiles,
    known: &mut Known,
    random: &mut Random,
    steps: u64,
) -> Result<(), Box<dyn Error>> {
    let log = known.open(files)?;
    for _ in 0..steps {
        known.step(&log, random)?;
    }
    Ok(log.close()?)
}

#[test]
fn pitfall_19_what_was_waited_for_is_there_after_a_power_cut_at_any_io() {
    let images = cut_everywhere(1..=12 * factor(), &SMALL);
    println!("{images} images recovered");
}

#[test]
fn a_sealed_log_is_as_whole_after_a_power_cut_at_any_io() {
    let options = sealed(&[1]).with_compression(Compression::Lz4).with_padding(Padding::Padme);
    let images = cut_everywhere(11..=10 + 4 * factor(), &options);
    println!("{images} images recovered");
}

/// Cuts the power at every I/O of a life with each seed. Returns how many disks were recovered.
fn cut_everywhere(seeds: std::ops::RangeInclusive<u64>, options: &Options) -> u64 {
    let of_nothing = || Known::of_nothing_with(options.clone());
    let mut images = 0;
    for seed in seeds {
        let whole = FakeFiles::new(seed);
        life(&whole, &mut of_nothing(), &mut Random::new(seed), 60).unwrap();
        for cut in 1..=whole.operations() {
            let files = FakeFiles::new(seed);
            files.set_sectors(if cut % 3 == 0 { Sectors::Garbage } else { Sectors::Whole });
            files.cut_power_at(cut);
            let mut known = of_nothing();
            let end = life(&files, &mut known, &mut Random::new(seed), 60);
            assert!(end.is_err() && files.operations() >= cut, "seed {seed} cut {cut}: {end:?}");
            for mood in [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter] {
                let image = files.after_power_cut_in(mood, seed ^ cut);
                let end = life(&image, &mut known.clone(), &mut Random::new(cut), 5);
                assert!(end.is_ok(), "seed {seed} cut {cut} {mood:?}: {end:?}");
                images += 1;
            }
        }
    }
    images
}

/// A log after some work, and what is known of it.
fn worked() -> (FakeFiles, Known) {
    let (files, mut known) = (FakeFiles::new(1), Known::of_nothing());
    life(&files, &mut known, &mut Random::new(1), 20).unwrap();
    (files, known)
}

#[test]
#[should_panic(expected = "was waited for")]
fn pitfall_25_a_lost_record_would_be_noticed() {
    let (files, mut known) = worked();
    known.durable = 1_000;
    known.open(&files).unwrap();
}

#[test]
#[should_panic(expected = "half a set")]
fn half_a_set_would_be_noticed() {
    let (files, mut known) = worked();
    known.set_ends.clear();
    known.open(&files).unwrap();
}

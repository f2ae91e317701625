//! Files of another log among a log's own, older and newer ones, one and two at a time: which log a
//! directory is, most of its files say, and a file that says otherwise is named and not believed.

use std::fmt;

use holdfast_io::Files;
use holdfast_io::fake::{FakeFiles, Mood, Random};
use holdfast_wal::{FileFault, OpenError, repair_at, verify_at};

use crate::support::{
    Work, bytes_of, factor, new_log, new_log_with, open, place, put_bytes, records, works,
};

const CATALOGUES: [&str; 2] = ["catalogue", "catalogue.copy"];
const DIRECTORIES: u64 = 60;

/// A log, and two others: their catalogues were written less often, and more often.
struct Logs {
    own: FakeFiles,
    others: [FakeFiles; 2],
    records: Vec<Work>,
}

fn copy(files: &FakeFiles) -> FakeFiles {
    files.after_power_cut_in(Mood::KeepAll, 0)
}

/// A log of so many records; it is opened so many times, each of which writes its catalogue.
fn log_of(seed: u64, chance: u64, records: u32, opens: u32) -> FakeFiles {
    let (files, log) = match chance {
        1 => new_log(seed),
        _ => new_log_with(seed, chance),
    };
    for work in &works(0..records) {
        log.append(work).unwrap();
    }
    log.close().unwrap();
    drop(log);
    for _ in 0..opens {
        open(&files).unwrap().0.close().unwrap();
    }
    files
}

fn logs(seed: u64) -> Logs {
    let mut random = Random::new(seed);
    let mut count = || 2000 + random.below(2000) as u32;
    let records = count();
    let others = [log_of(seed, 2, count(), 0), log_of(seed, 3, count(), 9)];
    Logs { own: log_of(seed, 1, records, 3), others, records: works(0..records) }
}

impl Logs {
    /// A directory in which these are another log's.
    fn with(&self, foreign: &[Foreign]) -> FakeFiles {
        let image = copy(&self.own);
        for Foreign { name, newer } in foreign {
            let other = &self.others[usize::from(*newer)];
            match other.metadata(name.as_ref()) {
                Ok(_) => put_bytes(&image, name, &bytes_of(other, name)),
                Err(_) => put_bytes(&image, name, &bytes_of(other, "segment-00000000")),
            }
        }
        image
    }

    fn names(&self) -> Vec<String> {
        let entries = self.own.read_dir("".as_ref()).unwrap().into_iter();
        let names = entries.map(|entry| String::from_utf8(entry.name).unwrap());
        let said = |name: &String| name.starts_with("segment-") || name.starts_with("catalogue");
        let mut names: Vec<_> = names.filter(said).collect();
        names.sort();
        names
    }

    fn judge(&self, foreign: &[Foreign]) -> Result<(), String> {
        let image = self.with(foreign);
        let is_foreign = |name: &str| foreign.iter().any(|foreign| foreign.name == name);
        let segments = foreign.iter().filter(|foreign| foreign.name.starts_with("seg")).count();
        let catalogues = CATALOGUES.iter().filter(|name| is_foreign(name)).count();
        self.judge_repair(&copy(&image), segments)?;
        if segments == 0 && catalogues == 1 {
            self.judge_look(&image, &is_foreign)?;
            return self.judge_opened(&image, foreign);
        }
        match open(&image).map(drop) {
            Err(OpenError::ForeignFile { name }) if is_foreign(&name) => Ok(()),
            opened => Err(format!("{opened:?} where another file is the foreign one")),
        }
    }

    /// One catalogue is enough, and the other is named.
    fn judge_look(&self, image: &FakeFiles, foreign: &dyn Fn(&str) -> bool) -> Result<(), String> {
        let looked = verify_at(&place(image), &mut |_| {}).map_err(|e| format!("{e:?}"))?;
        let named = |spoilt: &holdfast_wal::Spoilt| {
            foreign(&spoilt.name) && spoilt.fault == FileFault::Foreign
        };
        match &looked.spoilt[..] {
            [one] if named(one) => Ok(()),
            other => Err(format!("{other:?} are named")),
        }
    }

    fn judge_opened(&self, image: &FakeFiles, foreign: &[Foreign]) -> Result<(), String> {
        let (log, recovery) = open(image).map_err(|error| format!("{error:?}"))?;
        if recovery.remade.len() != foreign.len() || records(&log).unwrap() != self.records {
            return Err(format!("{:?} were made again", recovery.remade));
        }
        drop(log);
        let looked = verify_at(&place(image), &mut |_| {}).unwrap();
        looked.spoilt.is_empty().then_some(()).ok_or_else(|| "it was not made again".to_owned())
    }

    /// A repair keeps all that foreign segments do not stand in the place of.
    fn judge_repair(&self, image: &FakeFiles, segments: usize) -> Result<(), String> {
        let to = FakeFiles::new(7);
        repair_at(&place(image), Some(&place(&to)), &mut |_| {}).map_err(|e| format!("{e:?}"))?;
        let (log, _) = open(&to).map_err(|error| format!("what was repaired: {error:?}"))?;
        let kept = records(&log).map_err(|error| format!("what was repaired: {error:?}"))?;
        let is_whole = if segments == 0 { kept == self.records } else { !kept.is_empty() };
        let known = kept.iter().all(|record| self.records.get(record.id as usize) == Some(record));
        (is_whole && known).then_some(()).ok_or_else(|| format!("{} were kept", kept.len()))
    }
}

/// A file of another log.
#[derive(Clone, Debug)]
struct Foreign {
    name: String,
    newer: bool,
}

/// Says how to do it again.
struct Told<'a>(u64, &'a [Foreign]);

impl fmt::Display for Told<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told(seed, foreign) = self;
        write!(out, "{foreign:?}; replay: HOLDFAST_SEED={seed} ")?;
        write!(out, "cargo test -p holdfast-wal --test it foreign_files")
    }
}

fn seeds() -> std::ops::Range<u64> {
    let seed = std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok());
    seed.map_or(0..2 * factor(), |seed: u64| seed..seed + 1)
}

#[test]
fn a_file_of_another_log_is_named_and_not_believed() {
    let mut tried = 0;
    for seed in seeds() {
        let (logs, mut random) = (logs(seed), Random::new(seed));
        let names = logs.names();
        assert!(names.len() >= 6, "enough of its own files are left: {names:?}");
        let mut any = || {
            let name = names[random.below(names.len() as u64) as usize].clone();
            Foreign { name, newer: random.chance(50) }
        };
        for number in 0..DIRECTORIES {
            let mut foreign = vec![any()];
            foreign.extend((number % 2 == 1).then(&mut any));
            foreign.dedup_by(|one, other| one.name == other.name);
            let told = Told(seed, &foreign);
            logs.judge(&foreign).unwrap_or_else(|why| panic!("step {number}: {why}: {told}"));
            tried += 1;
        }
    }
    println!("{tried} directories with files of another log, none believed");
}

#[test]
#[should_panic(expected = "were kept")]
fn a_record_that_a_repair_makes_up_would_be_noticed() {
    let mut logs = logs(1);
    logs.records.pop();
    let foreign = CATALOGUES.map(|name| Foreign { name: name.to_owned(), newer: true });
    logs.judge(&foreign).unwrap_or_else(|why| panic!("{why}"));
}

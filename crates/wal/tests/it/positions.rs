//! Every position that a reading shows is one that a checkpoint and a cut take.

use holdfast_io::fake::{FakeFiles, Mood, Random};
use holdfast_wal::format::MessagePack;
use holdfast_wal::{Compression, Entry, Log, Lsn, Options, Parity};

use crate::sealed::sealed;
use crate::support::{SMALL, Work, WorkLog, factor, place, records, work};

fn open(files: &FakeFiles, options: &Options) -> WorkLog {
    Log::open_at(place(files), options).unwrap().0
}

/// Plain, with parity, and sealed and compressed.
fn options(seed: u64) -> Options {
    match seed % 3 {
        0 => SMALL,
        1 => SMALL.with_parity(Parity::TenPercent),
        _ => sealed(&[1]).with_compression(Compression::Lz4),
    }
}

/// A log with sets of all lengths, seals, marks, cuts and several openings in it.
fn log_of(seed: u64, options: &Options) -> FakeFiles {
    let (files, mut random) = (FakeFiles::new(seed), Random::new(seed));
    Log::<Work, MessagePack>::create_at(&place(&files), options).unwrap();
    let mut next = 0;
    for _ in 0..4 {
        let log = open(&files, options);
        for _ in 0..10 + random.below(30) {
            let first = next;
            next += 1 + random.below(5) as u32;
            let set: Vec<Work> = (first..next).map(work).collect();
            let ticket = log.append_all(&set).unwrap();
            match random.below(12) {
                0..=3 => ticket.wait().unwrap(),
                4 if random.chance(20) => log.checkpoint(ticket.end()).unwrap(),
                5 if random.chance(30) => {
                    log.truncate_after(ticket.lsn()).unwrap();
                    next = first;
                }
                _ => {}
            }
        }
        log.commit().unwrap();
    }
    files
}

/// What stays of `entries` if everything from `lsn` on goes.
fn before(entries: &[Entry<Work>], lsn: Lsn) -> Vec<Work> {
    entries.iter().filter(|entry| entry.end <= lsn).map(|entry| entry.record.clone()).collect()
}

fn from(entries: &[Entry<Work>], lsn: Lsn) -> Vec<Work> {
    entries.iter().filter(|entry| entry.lsn >= lsn).map(|entry| entry.record.clone()).collect()
}

#[test]
fn the_positions_that_are_shown_are_taken_for_a_checkpoint_and_for_a_cut() {
    let mut tried = 0;
    for seed in 0..9 * factor() {
        let options = options(seed);
        let files = log_of(seed, &options);
        let entries: Vec<_> = open(&files, &options).iter().map(Result::unwrap).collect();
        let mut shown: Vec<Lsn> = entries.iter().flat_map(|entry| [entry.lsn, entry.end]).collect();
        shown.dedup();
        let image = || files.after_power_cut_in(Mood::KeepAll, 0);
        for lsn in shown.into_iter().skip(seed as usize % 3).step_by(3) {
            let told = |error: &dyn std::fmt::Display| panic!("seed {seed}, LSN {lsn}: {error}");
            let cut = image();
            let log = open(&cut, &options);
            log.truncate_after(lsn).unwrap_or_else(|error| told(&error));
            drop(log);
            assert!(
                records(&open(&cut, &options)).unwrap() == before(&entries, lsn),
                "{seed} {lsn}"
            );
            let begun = image();
            let log = open(&begun, &options);
            log.checkpoint(lsn).unwrap_or_else(|error| told(&error));
            drop(log);
            assert!(
                records(&open(&begun, &options)).unwrap() == from(&entries, lsn),
                "{seed} {lsn}"
            );
            tried += 1;
        }
    }
    println!("{tried} positions were shown, and each was taken for a cut and for a checkpoint");
    assert!(tried > 200);
}

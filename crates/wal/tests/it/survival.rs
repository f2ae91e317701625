//! Logs that the device damaged, and what a program gets back of them.

use holdfast_io::fake::FakeFiles;
use holdfast_wal::format::MessagePack;
use holdfast_wal::{
    CheckVerdict, Log, Lsn, OpenError, Options, Parity, Policy, Recovery, RepairError, ReplayError,
    Scanned, repair, repair_at, verify, verify_at,
};

use crate::support::{SMALL, Work, place, records, work, works};

const SEGMENT: &str = "segment-00000000";
/// Position p of a log lies at this byte plus p of its first segment file.
const FRAMES_OFFSET: u64 = 4096;
const STRIPED: Options = PLAIN.with_parity(Parity::TenPercent);
const PLAIN: Options = SMALL.with_scan(Scanned::Whole);

type Opened = Result<(Log<Work, MessagePack>, Recovery), OpenError>;

fn open(files: &FakeFiles, options: Options, policy: Policy) -> Opened {
    Log::open_at(place(files), &options.with_policy(policy))
}

/// A closed log of twenty sets of three, and where they begin.
fn closed(options: Options) -> (FakeFiles, Vec<Lsn>) {
    let files = FakeFiles::new(1);
    Log::<Work, MessagePack>::create_at(&place(&files), &options).unwrap();
    let (log, _) = open(&files, options, Policy::Refuse).unwrap();
    let set = |first: u32| log.append_all(&works(first..first + 3)).unwrap().lsn();
    let starts = (0..20).map(|set_number| set(set_number * 3)).collect();
    log.close().unwrap();
    (files, starts)
}

/// Turns over a bit of the log.
fn flip(files: &FakeFiles, byte: u64) {
    files.flip_bit(SEGMENT.as_ref(), (FRAMES_OFFSET + byte) * 8).unwrap();
}

#[test]
fn a_log_with_parity_is_replayed_whole_and_says_what_it_was_given_back() {
    let (files, starts) = closed(STRIPED);
    let (log, _) = open(&files, STRIPED, Policy::Refuse).unwrap();
    flip(&files, starts[7].get() + 60);
    assert_eq!(records(&log).unwrap(), works(0..60));
    assert!(log.stat().mended_blocks > 0);
    drop(log);
    let opened = open(&files, STRIPED, Policy::Refuse).map(drop);
    assert!(matches!(opened, Err(OpenError::Corrupt { .. })), "{opened:?}");
    let (log, recovery) = open(&files, STRIPED, Policy::Repair).unwrap();
    let mended = recovery.mended;
    assert!(mended.len() == 1 && mended[0].from <= starts[7] && starts[7] < mended[0].to);
    assert_eq!((records(&log).unwrap(), log.stat().mended_blocks), (works(0..60), 0));
}

#[test]
fn a_log_that_was_cut_has_what_precedes_the_damage_and_goes_on() {
    let (files, starts) = closed(PLAIN);
    flip(&files, starts[7].get() + 60);
    let (log, recovery) = open(&files, PLAIN, Policy::Cut).unwrap();
    let lost = recovery.lost.unwrap();
    assert!(lost.from == starts[7] && lost.to > starts[19]);
    assert_eq!(records(&log).unwrap(), works(0..21));
    let ticket = log.append_durable(&work(100)).unwrap();
    assert!(ticket.lsn() >= lost.to);
    let all = [works(0..21), works(100..101)].concat();
    assert_eq!(records(&log).unwrap(), all);
    let late = log.iter_from(starts[12]).next().unwrap().unwrap();
    assert_eq!((late.lsn, late.record), (ticket.lsn(), work(100)));
    log.checkpoint(ticket.lsn()).unwrap();
    assert_eq!(records(&log).unwrap(), works(100..101));
}

/// Damaged below the watermark that an open begins to read at.
#[test]
fn what_an_open_does_not_read_is_found_by_who_reads_it() {
    let (files, starts) = closed(PLAIN);
    let tail = PLAIN.with_scan(Scanned::Tail);
    let (log, _) = open(&files, tail.clone(), Policy::Refuse).unwrap();
    for set in 0..400 {
        log.append_all(&works(set * 3..set * 3 + 3)).unwrap();
    }
    log.close().unwrap();
    drop(log);
    flip(&files, starts[7].get() + 60);
    let (log, recovery) = open(&files, tail.clone(), Policy::Cut).unwrap();
    assert_eq!(recovery.lost, None);
    let error = records(&log).unwrap_err();
    assert!(matches!(error, ReplayError::Damaged { lsn } if lsn == starts[7]), "{error:?}");
    drop(log);
    let (log, recovery) = open(&files, PLAIN, Policy::Cut).unwrap();
    assert_eq!(recovery.lost.unwrap().from, starts[7]);
    assert_eq!(records(&log).unwrap(), works(0..21));
}

#[test]
fn a_repair_keeps_every_whole_set_and_tells_which_records_of_the_others_are_left() {
    let (files, starts) = closed(PLAIN);
    // The second of three, amid its bytes.
    flip(&files, starts[7].get() + 48 + 8 + 40 + 20);
    let found = verify_at(&place(&files), &mut |_| {}).unwrap();
    assert_eq!((found.damaged.len(), found.damaged[0].stretch.from), (1, starts[7]));
    assert!(matches!(found.verdict, CheckVerdict::Corrupt { .. }));
    let to = FakeFiles::new(2);
    let done = repair_at(&place(&files), Some(&place(&to)), &mut |_| {}).unwrap();
    assert_eq!(done.lost, [found.damaged[0].stretch]);
    let broken = &done.broken[0];
    assert_eq!((broken.lsn, broken.records), (starts[7], 3));
    assert_eq!(broken.readable, [0, 2], "which the damaged one is");
    let (log, _) = open(&to, PLAIN, Policy::Refuse).unwrap();
    assert_eq!(records(&log).unwrap(), [works(0..21), works(24..60)].concat());
    let entry = log.iter_from(starts[12]).next().unwrap().unwrap();
    assert_eq!((entry.lsn, entry.record), (starts[12], work(36)), "positions hold");
}

#[test]
fn a_log_that_is_open_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let to = tempfile::tempdir().unwrap();
    let (log, _) = Log::<Work, MessagePack>::open_or_create(directory.path(), &STRIPED).unwrap();
    log.append_all(&works(0..30)).unwrap();
    let in_use = verify(directory.path(), &mut |_| {});
    assert!(matches!(in_use, Err(OpenError::InUse)), "{in_use:?}");
    let in_use = repair(directory.path(), Some(to.path()), &mut |_| {});
    assert!(matches!(in_use, Err(RepairError::Source(OpenError::InUse))), "{in_use:?}");
    log.close().unwrap();
    drop(log);
    let found = verify(directory.path(), &mut |_| {}).unwrap();
    assert_eq!((found.verdict, found.damaged), (CheckVerdict::Clean, vec![]));
    assert_eq!(found.parity.unwrap().sound, 1);
    let done = repair(directory.path(), Some(to.path()), &mut |_| {}).unwrap();
    assert_eq!((done.lost, done.mended), (vec![], vec![]));
    let (log, _) = Log::<Work, MessagePack>::open(to.path(), &STRIPED).unwrap();
    assert_eq!(records(&log).unwrap(), works(0..30));
}

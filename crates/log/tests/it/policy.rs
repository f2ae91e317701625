//! What an open does about damaged acknowledged data.

use holdfast_io::fake::FakeFiles;
use holdfast_log::{
    ConfigFault, CreateError, Log, LogConfig, Lsn, LsnRange, OpenError, Policy, Retention, Verdict,
};

use crate::device::{MOODS, fill, open, read};
use crate::support::{IDENTITY, Put};
use crate::survivor::{BLOCK, PLAIN, STRIPED, bytes_of, closed, copy, spoil, spoil_at, with};

const CUT: LogConfig = with_cut(PLAIN);

const fn with_cut(config: LogConfig) -> LogConfig {
    LogConfig { policy: Policy::Cut, ..config }
}

/// A closed log of some segments, in which the frame number `damaged` is not whole.
fn damaged(damaged: usize) -> (FakeFiles, Vec<Put>) {
    let (files, puts) = closed(PLAIN, 200 << 10);
    spoil_at(&files, PLAIN, puts[damaged].lsn.advance(20), 8);
    (files, puts)
}

#[test]
fn a_damaged_log_is_refused_by_default_and_left_as_it_was() {
    let (files, puts) = damaged(10);
    let before = files.operations();
    for policy in [Policy::Refuse, Policy::Repair] {
        match open(&files, with(PLAIN, policy)) {
            Err(OpenError::Corrupt { from, .. }) => assert_eq!(from, puts[10].lsn),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(files.operations(), before);
}

#[test]
fn a_cut_keeps_what_precedes_the_damage_reports_the_rest_and_goes_on_behind_it() {
    let (files, puts) = damaged(10);
    let frames_before = bytes_of(&files, "segment-00000001");
    let (log, recovery) = open(&files, CUT).unwrap();
    let lost = recovery.lost.unwrap();
    assert_eq!(lost.from, puts[10].lsn);
    assert!(lost.to >= puts.last().unwrap().end && lost.to.is_aligned(64 << 10), "{lost:?}");
    assert_eq!((recovery.verdict, recovery.tail), (Verdict::Clean, lost.to));
    assert_eq!(read(&log).0, puts[..10]);
    assert!(bytes_of(&files, "segment-00000001") == frames_before, "it can still be repaired");
    let more = fill(&log, 1_000, lost.to.get() + (100 << 10));
    assert!(more[0].lsn >= lost.to, "no position means two things");
    let all = [&puts[..10], &more].concat();
    assert!(read(&log).0 == all);
    // A reader who knew a position that is lost goes on behind it.
    let found = log.cursor(puts[12].lsn).next_frame().unwrap().map(|frame| frame.header.lsn);
    assert_eq!(found, Some(more[0].lsn));
    log.close().unwrap();
    drop(log);
    let (log, recovery) = open(&files, PLAIN).expect("nothing that it has is damaged");
    assert!(read(&log).0 == all);
    assert_eq!(recovery.lost, None);
}

#[test]
fn a_log_can_be_cut_wherever_it_is_damaged_and_more_than_once() {
    let (files, puts) = closed(PLAIN, 200 << 10);
    for at in 0..puts.len() {
        let image = copy(&files);
        spoil_at(&image, PLAIN, puts[at].lsn.advance(20), 8);
        let (log, _) = open(&image, CUT).unwrap();
        assert_eq!(read(&log).0, puts[..at], "{at}");
        let more = fill(&log, 1_000, log.marks().tail.get() + (20 << 10));
        log.close().unwrap();
        drop(log);
        spoil_at(&image, PLAIN, more[1].lsn.advance(20), 8);
        let (log, recovery) = open(&image, CUT).unwrap();
        assert_eq!(recovery.lost.unwrap().from, more[1].lsn);
        assert_eq!(read(&log).0, [&puts[..at], &more[..1]].concat(), "{at}");
    }
}

#[test]
fn what_parity_gives_back_is_not_cut() {
    let (files, puts) = closed(STRIPED, 600 << 10);
    spoil(&files, "segment-00000000", 4096 + 9 * BLOCK, 2 * BLOCK);
    let image = copy(&files);
    let (log, recovery) = open(&image, with_cut(STRIPED)).unwrap();
    assert_eq!((recovery.lost, recovery.mended.len()), (None, 1));
    assert!(read(&log).0 == puts);
    spoil(&files, "segment-00000000", 4096 + 100 * BLOCK, 9 * BLOCK);
    let (log, recovery) = open(&files, with_cut(STRIPED)).unwrap();
    let from = recovery.lost.unwrap().from;
    assert!(from.get() / BLOCK >= 99 - 3, "{from}");
    let kept = puts.iter().take_while(|put| put.lsn < from).count();
    assert_eq!(read(&log).0, puts[..kept]);
}

#[test]
fn damage_below_the_newest_mark_is_missed_by_nobody() {
    let (files, puts) = closed(PLAIN, 200 << 10);
    let (log, _) = open(&files, PLAIN).unwrap();
    log.mark(puts[12].lsn).unwrap();
    log.commit(log.marks().tail).unwrap();
    drop(log);
    spoil_at(&files, PLAIN, puts[10].lsn.advance(20), 8);
    let (log, recovery) = open(&files, CUT).unwrap();
    assert_eq!((recovery.lost, recovery.released), (None, puts[12].lsn));
    assert_eq!(read(&log).0, puts[12..]);
}

#[test]
fn nothing_is_cut_out_of_a_log_that_stays_in_its_ring() {
    let (files, _) = damaged(3);
    let in_ring = LogConfig { retention: Retention::InRing, ..CUT };
    let before = files.operations();
    let refused = open(&files, in_ring).map(drop);
    assert!(matches!(refused, Err(OpenError::Config(ConfigFault::CutInRing))), "{refused:?}");
    assert_eq!(files.operations(), before);
    let made = Log::create(&FakeFiles::new(1), IDENTITY, &in_ring);
    assert!(matches!(made, Err(CreateError::Config(ConfigFault::CutInRing))), "{made:?}");
}

#[test]
fn a_checkpoint_behind_a_hole_forgets_it() {
    let (files, _) = damaged(3);
    let (log, recovery) = open(&files, CUT).unwrap();
    let hole = recovery.lost.unwrap();
    let more = fill(&log, 1_000, hole.to.get() + (20 << 10));
    let in_ring = LogConfig { retention: Retention::InRing, ..PLAIN };
    log.close().unwrap();
    drop(log);
    let refused = open(&files, in_ring).map(drop);
    assert!(matches!(refused, Err(OpenError::Corrupt { from, .. }) if from == hole.from));
    let (log, _) = open(&files, PLAIN).unwrap();
    log.mark(more[1].lsn).unwrap();
    log.close().unwrap();
    drop(log);
    assert_eq!(open(&files, in_ring).map(drop).map_err(|error| error.to_string()), Ok(()));
}

#[test]
fn power_that_fails_while_a_log_is_cut_leaves_it_whole_or_cut() {
    let (files, puts) = damaged(10);
    let hole = open(&copy(&files), CUT).unwrap().1.lost;
    for cut in 1.. {
        let image = copy(&files);
        image.cut_power_at(image.operations() + cut);
        let opened = open(&image, CUT);
        for mood in MOODS {
            let image = image.after_power_cut_in(mood, cut);
            let refused = open(&copy(&image), PLAIN).map(drop);
            let (log, recovery) = open(&image, CUT).expect("it can be cut");
            match refused {
                Ok(()) => assert_eq!(recovery.lost, None),
                Err(OpenError::Corrupt { .. }) => assert_eq!(recovery.lost, hole),
                Err(error) => panic!("cut {cut} {mood:?}: {error}"),
            }
            assert_eq!(read(&log).0, puts[..10], "cut {cut} {mood:?}");
        }
        if opened.is_ok() {
            break;
        }
        assert!(cut < 100, "it ends");
    }
}

/// The canary: a log that is whole has no hole.
#[test]
fn a_log_that_is_whole_is_neither_mended_nor_cut() {
    for (config, policy) in [(PLAIN, Policy::Cut), (STRIPED, Policy::Cut), (PLAIN, Policy::Repair)]
    {
        let (files, puts) = closed(config, 100 << 10);
        let (log, recovery) = open(&files, with(config, policy)).unwrap();
        assert_eq!((recovery.lost, recovery.mended), (None::<LsnRange>, vec![]));
        assert!(read(&log).0 == puts && recovery.released == Lsn(0));
    }
}

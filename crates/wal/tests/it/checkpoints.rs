//! Checkpoints: what is below is not needed any more.

use holdfast_io::Files;
use holdfast_wal::{CheckpointError, Lsn, ReplayError};

use crate::support::{new_log, open, records, work, works};

#[test]
fn a_replay_begins_at_the_last_checkpoint_also_after_a_restart() {
    let (files, log) = new_log(1);
    let ends: Vec<_> = works(0..30).iter().map(|item| log.append(item).unwrap().end()).collect();
    log.checkpoint(ends[9]).unwrap();
    assert_eq!(log.stat().checkpoint, ends[9]);
    assert_eq!(records(&log).unwrap(), works(10..30));
    log.checkpoint(ends[4]).unwrap();
    assert_eq!(records(&log).unwrap(), works(10..30), "a checkpoint does not go back");
    drop(log);
    let (log, recovery) = open(&files).unwrap();
    assert_eq!(recovery.checkpoint, ends[9]);
    assert_eq!(records(&log).unwrap(), works(10..30));
}

#[test]
fn a_checkpoint_at_the_end_leaves_nothing_to_replay() {
    let (files, log) = new_log(2);
    let last = works(0..30).iter().map(|item| log.append(item).unwrap()).last().unwrap();
    log.checkpoint(last.end()).unwrap();
    assert_eq!(records(&log).unwrap(), []);
    drop(log);
    let (log, _) = open(&files).unwrap();
    assert_eq!(records(&log).unwrap(), []);
    log.append_durable(&work(30)).unwrap();
    assert_eq!(records(&log).unwrap(), [work(30)]);
}

#[test]
fn a_checkpoint_where_no_set_ends_is_refused_and_changes_nothing() {
    let (files, log) = new_log(3);
    let ticket = log.append(&work(0)).unwrap();
    log.append_durable(&work(1)).unwrap();
    for lsn in [ticket.lsn().advance(8), ticket.end().advance(8), Lsn(1), Lsn(u64::MAX)] {
        let refused = log.checkpoint(lsn);
        assert!(matches!(refused, Err(CheckpointError::NoBoundary { .. })), "{lsn}: {refused:?}");
    }
    drop(log);
    assert_eq!(records(&open(&files).unwrap().0).unwrap(), works(0..2));
}

#[test]
fn space_below_checkpoints_is_used_again_and_readers_of_it_are_told() {
    let (files, log) = new_log(4);
    let mut late = log.iter();
    let mut counts = Vec::new();
    for round in 0..20 {
        for item in works(round * 500..round * 500 + 500) {
            log.append(&item).unwrap();
        }
        log.commit().unwrap();
        log.checkpoint(log.iter().last().unwrap().unwrap().end).unwrap();
        counts.push(files.read_dir("".as_ref()).unwrap().len());
    }
    assert_eq!(counts[3], counts[19], "{counts:?}");
    let first = log.stat().checkpoint;
    for gone in [late.next(), log.iter_from(Lsn(0)).next()] {
        assert!(
            matches!(gone, Some(Err(ReplayError::Truncated { first: told })) if told == first),
            "{gone:?}"
        );
    }
}

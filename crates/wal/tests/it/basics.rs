//! Append, wait, replay.

use holdfast_wal::format::MessagePack;
use holdfast_wal::{Background, Log, ReplayError};

use crate::support::{SMALL, Work, new_log, open, records, work, works};

#[test]
fn what_was_waited_for_is_replayed_in_order_also_after_a_restart() {
    let (files, log) = new_log(1);
    for item in works(0..100) {
        log.append(&item).unwrap();
    }
    assert_eq!(records(&log).unwrap(), [], "nothing is durable yet, so nothing is shown");
    log.append(&work(100)).unwrap().wait().unwrap();
    assert_eq!(records(&log).unwrap(), works(0..101));
    log.close().unwrap();
    drop(log);
    let (log, recovery) = open(&files).unwrap();
    assert_eq!(recovery.torn, None);
    assert_eq!(records(&log).unwrap(), works(0..101));
}

#[test]
fn a_log_longer_than_its_memory_takes_everything_and_gives_it_back() {
    let (files, log) = new_log(2);
    for item in works(0..20_000) {
        log.append(&item).unwrap();
    }
    log.commit().unwrap();
    assert!(log.stat().end.get() > 10 * SMALL.ring_bytes);
    assert!(records(&log).unwrap() == works(0..20_000));
    drop(log);
    let (log, _) = open(&files).unwrap();
    assert!(records(&log).unwrap() == works(0..20_000));
}

#[test]
fn a_set_has_one_position_and_its_records_are_numbered() {
    let (_files, log) = new_log(3);
    let first = log.append_all(&works(0..3)).unwrap();
    let second = log.append(&work(3)).unwrap();
    second.wait().unwrap();
    let found: Vec<_> = log.iter().map(Result::unwrap).collect();
    let places: Vec<_> = found.iter().map(|entry| (entry.lsn, entry.index, entry.end)).collect();
    let end = first.end();
    assert_eq!(places[..3], [0, 1, 2].map(|index| (first.lsn(), index, end)));
    assert_eq!(places[3], (second.lsn(), 0, second.end()));
}

#[test]
fn reading_can_begin_at_any_set() {
    let (_files, log) = new_log(4);
    let tickets: Vec<_> = works(0..50).iter().map(|item| log.append(item).unwrap()).collect();
    log.commit().unwrap();
    for (number, ticket) in tickets.iter().enumerate() {
        let from = |lsn| log.iter_from(lsn).next().map(|entry| entry.unwrap().record.id as usize);
        assert_eq!(from(ticket.lsn()), Some(number));
        assert_eq!(from(ticket.end()), (number < 49).then_some(number + 1));
    }
    let amid = log.iter_from(tickets[7].lsn().advance(8)).next();
    assert!(matches!(amid, Some(Err(ReplayError::Damaged { .. }))), "{amid:?}");
}

#[test]
fn an_empty_set_is_durable_and_yields_nothing() {
    let (_files, log) = new_log(5);
    log.append_all(&[]).unwrap().wait().unwrap();
    log.append_durable(&work(1)).unwrap();
    assert_eq!(records(&log).unwrap(), [work(1)]);
}

#[test]
fn a_dropped_log_has_made_everything_durable() {
    let (files, log) = new_log(6);
    for item in works(0..10) {
        log.append(&item).unwrap();
    }
    drop(log);
    assert_eq!(records(&open(&files).unwrap().0).unwrap(), works(0..10));
}

#[test]
fn a_log_in_a_real_directory_serves_many_threads() {
    for background in [Background::None, Background::Prepare, Background::DrainAndPrepare] {
        let directory = tempfile::tempdir().unwrap();
        let options = SMALL.with_background(background);
        let (log, _) =
            Log::<Work, MessagePack>::open_or_create(directory.path(), &options).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let log = &log;
                scope.spawn(move || {
                    for id in 0..200 {
                        log.append_durable(&work(thread * 1000 + id)).unwrap();
                    }
                });
            }
        });
        log.close().unwrap();
        let mut found: Vec<_> = records(&log).unwrap().iter().map(|work| work.id).collect();
        for thread in 0..4 {
            let of_thread = found.iter().filter(|id| **id / 1000 == thread);
            assert!(of_thread.copied().is_sorted(), "each thread's records are in its order");
        }
        found.sort_unstable();
        let all: Vec<_> = (0..4).flat_map(|thread| thread * 1000..thread * 1000 + 200).collect();
        assert_eq!(found, all);
    }
}

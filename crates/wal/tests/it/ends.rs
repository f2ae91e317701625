//! The end of a log: read first, and cut off.

use holdfast_io::fake::FakeFiles;
use holdfast_wal::format::MessagePack;
use holdfast_wal::{Compression, Log, ReplayError, TruncateError};

use crate::sealed::{open_as, sealed};
use crate::support::{Work, new_log, open, place, records, work, works};

#[test]
fn the_newest_record_is_read_first() {
    let (_files, log) = new_log(1);
    let mut next = 0;
    while next < 400 {
        log.append_all(&works(next..next + next % 5)).unwrap();
        next += (next % 5).max(1);
        log.append(&work(next - 1)).unwrap();
    }
    log.commit().unwrap();
    let forwards: Vec<_> = log.iter().map(Result::unwrap).collect();
    let mut backwards: Vec<_> = log.iter_back().map(Result::unwrap).collect();
    backwards.reverse();
    assert!(backwards == forwards);
    let middle = &forwards[200];
    let mut before: Vec<_> = log.iter_back_from(middle.lsn).map(Result::unwrap).collect();
    before.reverse();
    assert!(before == forwards[..200 - usize::from(middle.index)]);
}

#[test]
fn reading_backwards_ends_at_the_checkpoint() {
    let (_files, log) = new_log(2);
    let tickets: Vec<_> = works(0..20).iter().map(|item| log.append(item).unwrap()).collect();
    log.checkpoint(tickets[11].end()).unwrap();
    let back: Vec<Work> = log.iter_back().map(|entry| entry.unwrap().record).collect();
    assert!(back == works(12..20).into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn what_is_cut_off_does_not_come_back() {
    let (files, log) = new_log(3);
    let ends: Vec<_> = works(0..40).iter().map(|item| log.append(item).unwrap().end()).collect();
    log.truncate_after(ends[24]).unwrap();
    assert!(records(&log).unwrap() == works(0..25));
    log.append_all(&works(25..30)).unwrap();
    log.commit().unwrap();
    assert!(records(&log).unwrap() == works(0..30));
    drop(log);
    let (log, _) = open(&files).unwrap();
    assert!(records(&log).unwrap() == works(0..30));
}

#[test]
fn a_cut_below_the_checkpoint_amid_a_set_or_of_a_closed_log_is_refused() {
    let (_files, log) = new_log(4);
    let tickets: Vec<_> = works(0..10).iter().map(|item| log.append(item).unwrap()).collect();
    log.checkpoint(tickets[5].end()).unwrap();
    let below = log.truncate_after(tickets[2].end());
    let first = tickets[5].end();
    assert!(matches!(below, Err(TruncateError::Truncated { first: at }) if at == first));
    let amid = log.truncate_after(tickets[7].lsn().advance(8));
    assert!(matches!(amid, Err(TruncateError::NoBoundary { .. })), "{amid:?}");
    assert!(records(&log).unwrap() == works(6..10));
    log.close().unwrap();
    assert!(matches!(log.truncate_after(first), Err(TruncateError::Closed)));
}

#[test]
fn a_replay_that_had_come_further_is_told_when_it_has_given_what_it_had() {
    let (_files, log) = new_log(5);
    let tickets: Vec<_> = works(0..300).iter().map(|item| log.append(item).unwrap()).collect();
    log.commit().unwrap();
    let mut replay = log.iter_from(tickets[200].lsn());
    replay.next().unwrap().unwrap();
    log.truncate_after(tickets[100].end()).unwrap();
    log.append_durable(&work(7)).unwrap();
    let end = replay.find_map(Result::err);
    assert!(end.is_none_or(
        |error| matches!(error, ReplayError::Cut { from } if from == tickets[100].end())
    ));
    let after: Vec<Work> = log.iter().map(|entry| entry.unwrap().record).collect();
    assert!(after.len() == 102 && after[101] == work(7));
}

#[test]
fn sets_that_are_compressed_and_sealed_are_read_backwards_and_cut_off_like_others() {
    let options = sealed(&[1]).with_compression(Compression::Lz4);
    let files = FakeFiles::new(6);
    Log::<Work, MessagePack>::create_at(&place(&files), &options).unwrap();
    let log = open_as::<Work, MessagePack>(&files, &options).unwrap();
    let mut ends = Vec::new();
    for set in works(0..200).chunks(3) {
        ends.push(log.append_all(set).unwrap().end());
    }
    log.truncate_after(ends[39]).unwrap();
    let mut back: Vec<Work> = log.iter_back().map(|entry| entry.unwrap().record).collect();
    back.reverse();
    assert!(back == works(0..120));
    drop(log);
    let log = open_as::<Work, MessagePack>(&files, &options).unwrap();
    assert!(records(&log).unwrap() == works(0..120));
}

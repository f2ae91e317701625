//! Reading a log that somebody else has open.

use std::time::Duration;

use holdfast_io::fake::FakeFiles;
use holdfast_wal::format::MessagePack;
use holdfast_wal::{Compression, Keys, Log, OpenError, Options, ReplayError, Watch};

use crate::support::{SMALL, Work, new_log, place, work, works};

fn watch(files: &FakeFiles, options: &Options) -> Result<Watch<Work, MessagePack>, OpenError> {
    Watch::open_at(&place(files), options)
}

/// What there is to be had now.
fn rest(watch: &mut Watch<Work, MessagePack>) -> Vec<Work> {
    let next = || watch.next(Duration::ZERO).expect("nothing is damaged").map(|entry| entry.record);
    std::iter::from_fn(next).collect()
}

#[test]
fn what_was_there_is_given_backwards_and_what_comes_in_order() {
    let (files, log) = new_log(1);
    for set in works(0..50).chunks(7) {
        log.append_all(set).unwrap().wait().unwrap();
    }
    let mut watch = watch(&files, &SMALL).unwrap();
    let mut seen: Vec<Work> = watch.iter_back().map(|entry| entry.unwrap().record).collect();
    seen.reverse();
    assert!(seen == works(0..49), "the last set, of one, has nothing behind it");
    for id in 50..400 {
        log.append_durable(&work(id)).unwrap();
        seen.extend(rest(&mut watch));
        assert!(seen == works(0..id), "all but the last, after {id}");
    }
    log.close().unwrap();
    seen.extend(rest(&mut watch));
    assert!(seen == works(0..400));
    assert_eq!(watch.iter_back().count(), 49, "where it began does not move");
}

#[test]
fn a_log_that_is_sealed_and_compressed_is_read_with_its_keys_alone() {
    let files = FakeFiles::new(2);
    let keys = || Keys::new((1, &[7; 32]), &[]).unwrap();
    let sealed = SMALL.with_compression(Compression::Lz4).with_keys(keys());
    Log::<Work, MessagePack>::create_at(&place(&files), &sealed).unwrap();
    let (log, _) = Log::<Work, MessagePack>::open_at(place(&files), &sealed).unwrap();
    assert!(matches!(watch(&files, &SMALL), Err(OpenError::Sealed)));
    let mut watch = watch(&files, &Options::new().with_keys(keys())).unwrap();
    log.append_all(&works(0..300)).unwrap().wait().unwrap();
    log.close().unwrap();
    assert!(rest(&mut watch) == works(0..300));
}

#[test]
fn one_that_is_too_slow_is_told_where_the_log_begins() {
    let (files, log) = new_log(3);
    log.append_durable(&work(0)).unwrap();
    let mut watch = watch(&files, &SMALL).unwrap();
    for id in 1..3_000 {
        let ticket = log.append_durable(&work(id)).unwrap();
        log.checkpoint(ticket.end()).unwrap();
    }
    let told = watch.next(Duration::ZERO);
    assert!(matches!(told, Err(ReplayError::Truncated { .. })), "{told:?}");
}

#[test]
fn it_returns_when_its_time_is_over_and_does_not_keep_anybody_from_opening() {
    let directory = tempfile::tempdir().unwrap();
    let create = || Log::<Work, MessagePack>::create(directory.path(), &SMALL);
    assert!(matches!(
        Watch::<Work, MessagePack>::open(directory.path(), &SMALL),
        Err(OpenError::NoLog)
    ));
    create().unwrap();
    let mut watch = Watch::<Work, MessagePack>::open(directory.path(), &SMALL).unwrap();
    assert!(watch.next(Duration::from_millis(60)).unwrap().is_none());
    let (log, _) = Log::<Work, MessagePack>::open(directory.path(), &SMALL).unwrap();
    log.append_durable(&work(0)).unwrap();
    log.close().unwrap();
    let found = watch.next(Duration::from_secs(60)).unwrap().expect("it is durable");
    assert_eq!(found.record, work(0));
}

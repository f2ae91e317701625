//! Following a log.

use std::time::Duration;

use holdfast_wal::ReplayError;

use crate::support::{Work, new_log, work, works};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_tail_sees_every_record_in_order_once_it_is_durable() {
    let (_files, log) = new_log(1);
    let second = (log.append(&work(0)).unwrap(), log.append(&work(1)).unwrap()).1;
    let mut tails = [log.tail(log.stat().checkpoint), log.tail(second.lsn())];
    assert!(tails[0].next(Duration::ZERO).unwrap().is_none(), "not durable yet");
    std::thread::scope(|scope| {
        let readers = tails.each_mut().map(|tail| {
            scope.spawn(move || {
                let next = || tail.next(PATIENCE).unwrap().expect("there is more").record;
                let mut seen: Vec<Work> = std::iter::repeat_with(next).take(299).collect();
                seen.extend(tail.next(Duration::ZERO).unwrap().map(|entry| entry.record));
                seen
            })
        });
        for set in works(2..300).chunks(7) {
            log.append_all(set).unwrap().wait().unwrap();
        }
        let [whole, later] = readers.map(|reader| reader.join().unwrap());
        assert!(whole == works(0..300));
        assert!(later == works(1..300));
    });
}

#[test]
fn a_tail_returns_when_its_time_is_over() {
    let (_files, log) = new_log(2);
    assert!(log.tail(log.stat().end).next(Duration::from_millis(10)).unwrap().is_none());
}

#[test]
fn a_tail_of_a_failed_log_says_that_there_will_be_no_more() {
    let (files, log) = new_log(3);
    log.append_durable(&work(0)).unwrap();
    let mut tail = log.tail(log.stat().checkpoint);
    files.cut_power_at(files.operations() + 1);
    log.append(&work(1)).unwrap().wait().unwrap_err();
    let seen = tail.next(PATIENCE).map(|entry| entry.map(|entry| entry.record));
    assert!(matches!(seen, Ok(Some(_)) | Err(ReplayError::Io(_))), "{seen:?}");
    let over = tail.next(PATIENCE);
    assert!(matches!(over, Err(ReplayError::Failed(_) | ReplayError::Io(_))), "{over:?}");
}

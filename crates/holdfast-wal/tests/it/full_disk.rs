//! A full disk loses nothing and says what it is.

use holdfast_io::Files;
use holdfast_wal::{AppendError, CommitError};

use crate::support::{new_log, open, records, work, works};

#[test]
fn pitfall_14_a_full_disk_refuses_appends_keeps_what_it_has_and_goes_on_once_there_is_room() {
    let (files, log) = new_log(1);
    let space = files.space().unwrap();
    files.set_capacity_bytes(Some(space.total_bytes - space.free_bytes));
    let mut appended = 0;
    let refused = loop {
        match log.append(&work(appended)) {
            Ok(_) => appended += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, AppendError::DiskFull(_)), "{refused:?}");
    let waited = log.commit();
    assert!(matches!(waited, Err(CommitError::DiskFull(_))), "{waited:?}");
    files.set_capacity_bytes(None);
    log.append_durable(&work(appended)).unwrap();
    assert!(records(&log).unwrap() == works(0..appended + 1));
    drop(log);
    assert!(records(&open(&files).unwrap().0).unwrap() == works(0..appended + 1));
}

//! A full disk loses nothing and says what it is, and can be left again.

use holdfast_io::Files;
use holdfast_io::fake::{FakeFiles, Mood};
use holdfast_wal::{AppendError, CheckpointError, CommitError, Lsn};

use crate::support::{WorkLog, factor, new_log, open, records, work, works};

/// Nothing more can be allocated.
fn fill_disk(files: &FakeFiles) {
    let space = files.space().unwrap();
    files.set_capacity_bytes(Some(space.total_bytes - space.free_bytes));
}

/// Appends and commits, until the disk is full; the ends of what is durable.
fn fill_log(log: &WorkLog) -> Vec<Lsn> {
    let mut ends = Vec::new();
    loop {
        match log.append(&work(ends.len() as u32)).map_err(drop).and_then(|t| {
            t.wait().map_err(drop)?;
            Ok(t.end())
        }) {
            Ok(end) => ends.push(end),
            Err(()) => return ends,
        }
    }
}

#[test]
fn pitfall_14_a_full_disk_refuses_appends_keeps_what_it_has_and_goes_on_once_there_is_room() {
    let (files, log) = new_log(1);
    fill_disk(&files);
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

#[test]
fn a_log_on_a_full_disk_is_opened_checkpointed_and_goes_on() {
    for pages in 0..40 {
        let (files, log) = new_log(1);
        let space = files.space().unwrap();
        let used = space.total_bytes - space.free_bytes;
        files.set_capacity_bytes(Some(used + pages * 4096)); // Room for half of a segment, or two.
        let ends = fill_log(&log);
        drop(log);
        let (log, _) = open(&files).unwrap_or_else(|error| panic!("{pages} pages: {error}"));
        let kept = records(&log).unwrap();
        assert!(kept.len() >= ends.len() && kept == works(0..kept.len() as u32));
        let half = ends[ends.len() / 2];
        log.checkpoint(half).unwrap_or_else(|error| panic!("{pages} pages: {error}"));
        assert!(log.append_durable(&work(7)).is_ok(), "{pages} pages: a segment is free");
        drop(log);
        let image = files.after_power_cut_in(Mood::LoseAll, 0);
        assert_eq!(open(&image).unwrap().1.checkpoint, half, "{pages} pages");
    }
}

#[test]
fn a_checkpoint_that_frees_no_segment_is_durable_on_a_full_disk_and_so_is_its_repetition() {
    let (files, log) = new_log(1);
    fill_disk(&files);
    let ends = fill_log(&log);
    for end in [ends[2], ends[2], ends[5]] {
        log.checkpoint(end).unwrap();
        let image = files.after_power_cut_in(Mood::LoseAll, 0);
        assert_eq!(open(&image).unwrap().1.checkpoint, end);
    }
    let ahead = log.checkpoint(log.stat().end);
    assert!(matches!(ahead, Ok(()) | Err(CheckpointError::NotDurable(_))), "{ahead:?}");
}

#[test]
fn a_log_on_a_full_disk_is_cut_off() {
    let (files, log) = new_log(1);
    let ends: Vec<Lsn> = works(0..900).iter().map(|w| log.append(w).unwrap().end()).collect();
    log.commit().unwrap();
    fill_disk(&files);
    log.truncate_after(ends[99]).unwrap();
    drop(log);
    let (log, _) = open(&files).unwrap();
    assert!(records(&log).unwrap() == works(0..100));
    log.truncate_after(ends[49]).unwrap();
    assert!(records(&log).unwrap() == works(0..50));
}

/// Room runs out at each allocation of a life in turn.
#[test]
fn whichever_allocation_finds_the_disk_full_nothing_acknowledged_is_lost() {
    let mut opened = 0;
    for room in 0..60 * factor() {
        let (files, log) = new_log(room);
        let space = files.space().unwrap();
        let used = space.total_bytes - space.free_bytes;
        files.set_capacity_bytes(Some(used + room * 4096));
        let ends = fill_log(&log);
        let acked = ends.len() as u32;
        let upto = ends[(room as usize * 37) % ends.len()];
        let checkpointed = log.checkpoint(upto).is_ok();
        drop(log);
        for mood in [Mood::LoseAll, Mood::KeepAll, Mood::Scatter] {
            let image = files.after_power_cut_in(mood, room);
            let (log, recovery) = open(&image).unwrap_or_else(|e| panic!("room {room}: {e}"));
            let below = ends.iter().take_while(|end| **end <= recovery.checkpoint).count() as u32;
            let found = records(&log).unwrap();
            assert!(!checkpointed || recovery.checkpoint == upto, "room {room} {mood:?}");
            assert!(found == works(below..below + found.len() as u32), "room {room} {mood:?}");
            assert!(below + found.len() as u32 >= acked, "room {room} {mood:?}");
            opened += 1;
        }
    }
    println!("{opened} full disks, each opened with all that was acknowledged");
}

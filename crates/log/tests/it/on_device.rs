//! A log that stays on its device: longer than its ring, read by cursors.

use std::time::Duration;

use holdfast_io::Files;
use holdfast_log::{CursorError, Lsn};

use crate::device::{ON_DEVICE, append, at_every_power_cut, life, new_log, open, rest};
use crate::support::{Put, RING_BYTES};

#[test]
fn a_log_many_times_longer_than_its_ring_is_read_back_whole_also_after_a_restart() {
    let (files, log) = new_log(1, ON_DEVICE);
    let mut puts = append(&log, 0..400);
    log.commit(log.marks().tail).unwrap();
    assert!(log.marks().tail.0 > 4 * RING_BYTES, "{:?}", log.marks());
    assert_eq!(rest(&mut log.cursor(log.first())), puts);
    log.close().unwrap();
    drop(log);
    let (log, recovery) = open(&files, ON_DEVICE).unwrap();
    assert_eq!(recovery.released, Lsn(0));
    puts.extend(append(&log, 400..500));
    log.commit(log.marks().tail).unwrap();
    assert!(rest(&mut log.cursor(log.first())) == puts);
}

#[test]
fn a_cursor_shows_only_what_is_durable_and_goes_on_when_there_is_more() {
    let (_files, log) = new_log(2, ON_DEVICE);
    let mut cursor = log.cursor(log.first());
    let puts = append(&log, 0..3);
    assert_eq!(rest(&mut cursor), []);
    assert!(!cursor.wait(Duration::ZERO));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            while !cursor.wait(Duration::from_secs(60)) {}
            rest(&mut cursor)
        });
        log.commit(puts[2].end).unwrap();
        assert_eq!(waiting.join().unwrap(), puts);
    });
}

#[test]
fn several_cursors_read_from_wherever_they_like() {
    let (_files, log) = new_log(3, ON_DEVICE);
    let puts = append(&log, 0..200);
    log.commit(log.marks().tail).unwrap();
    for start in [0, 1, 77, 199] {
        assert_eq!(rest(&mut log.cursor(puts[start].lsn)), puts[start..]);
    }
    let mut amid = log.cursor(puts[5].lsn.advance(8));
    assert!(matches!(amid.next_frame(), Err(CursorError::Damaged { .. })));
}

#[test]
fn what_is_marked_makes_room_on_the_device_and_a_late_cursor_is_told() {
    let (files, log) = new_log(4, ON_DEVICE);
    let puts = append(&log, 0..100);
    log.commit(log.marks().tail).unwrap();
    let mut late = log.cursor(puts[0].lsn);
    let files_there = || files.read_dir("".as_ref()).unwrap().len();
    let mut counts = Vec::new();
    for round in 0..10 {
        let more = append(&log, round * 100..round * 100 + 100);
        log.commit(log.marks().tail).unwrap();
        log.mark(more[90].lsn).unwrap();
        log.commit(log.marks().tail).unwrap();
        counts.push(files_there());
    }
    assert_eq!(counts[2], counts[9], "files are used again: {counts:?}");
    let truncated = late.next_frame();
    assert!(
        matches!(truncated, Err(CursorError::Truncated { first }) if first == log.first()),
        "{truncated:?}"
    );
}

#[test]
fn damage_on_the_device_is_reported_where_it_is() {
    let (files, log) = new_log(5, ON_DEVICE);
    let puts = append(&log, 0..20);
    log.commit(log.marks().tail).unwrap();
    // Position p lies at byte 4096 + p of the first file.
    let byte = 4096 + puts[7].end.0 - 16;
    files.flip_bit("segment-00000000".as_ref(), byte * 8 + 3).unwrap();
    let mut cursor = log.cursor(log.first());
    for put in &puts[..7] {
        assert_eq!(cursor.next_frame().unwrap().unwrap().header.lsn, put.lsn);
    }
    let damaged = cursor.next_frame();
    assert!(
        matches!(damaged, Err(CursorError::Damaged { at }) if at == puts[7].lsn),
        "{damaged:?}"
    );
    assert_eq!(cursor.position(), puts[7].lsn, "it stays there");
}

#[test]
fn what_was_durable_is_read_back_after_a_power_cut_at_any_io() {
    let images = at_every_power_cut(
        6,
        |files, durable: &mut Vec<Put>| life(files, ON_DEVICE, durable, 40),
        |image, durable, _| life(image, ON_DEVICE, durable, 3),
    );
    println!("{images} images of a log on its device");
}

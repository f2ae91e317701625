//! What a log does when nothing goes wrong.

use std::sync::atomic::Ordering;
use std::time::Duration;

use holdfast_io::fake::Mood;
use holdfast_log::{AppendError, Health, Source, Verdict, words};
use holdfast_memory::Region;

use crate::support::{CONFIG, Model, contents, new_log, open_with, region};

fn word(region: &Region, index: usize) -> u64 {
    region.word(index).load(Ordering::Relaxed)
}

#[test]
fn frames_come_back_in_order_and_lie_where_append_said() {
    let (_files, _region, log) = new_log(1);
    let mut model = Model::default();
    for bytes in [8, 1, 47, 48, 4000, 20_000, 4048, 4049] {
        model.put(&log, bytes).expect("there is room");
    }
    assert_eq!(contents(&log), model.puts);
    let appended = log.append(3, &[b"first, ", b"second"]).expect("there is room");
    let mut copy = [0; 13];
    log.copy_bytes(appended.payload, &mut copy);
    assert_eq!(&copy, b"first, second");
    let frames = log.frames(appended.lsn, appended.end);
    let frame = frames.iter().next().expect("it was just appended");
    assert_eq!((frame.header.records, frame.payload_lsn), (3, appended.payload));
}

#[test]
fn a_payload_that_fills_half_a_span_is_taken_and_one_byte_more_is_not() {
    let (_files, _region, log) = new_log(2);
    let most = log.payload_bytes_max();
    for _ in 0..6 {
        log.wait_for_room(most, Duration::MAX).expect("it can always be made to fit");
        log.append(1, &[&vec![7; most as usize]]).expect("it was waited for");
        let tail = log.marks().tail;
        log.commit(tail).expect("the disk is sound");
        log.mark(tail).expect("marks have room");
        log.release(tail);
    }
    let refused = log.append(1, &[&vec![7; most as usize + 1]]);
    assert!(matches!(refused, Err(AppendError::TooLarge { .. })), "{refused:?}");
    let refused = log.wait_for_room(most + 1, Duration::MAX);
    assert!(matches!(refused, Err(AppendError::TooLarge { .. })), "{refused:?}");
}

#[test]
fn too_much_that_is_dirty_waits_for_the_device() {
    let (_files, _region, log) = new_log(3);
    let mut model = Model::default();
    while model.put(&log, 9000).is_ok() {}
    let marks = log.marks();
    assert!(marks.tail.since(marks.durable) <= CONFIG.dirty_bytes_max);
    assert!(marks.tail.since(marks.durable) > CONFIG.dirty_bytes_max - 10_000);
    log.wait_for_room(9000, Duration::MAX).expect("waiting drains");
    model.put(&log, 9000).expect("it was waited for");
}

#[test]
fn a_full_ring_waits_for_its_reader_and_goes_on() {
    let (_files, _region, log) = new_log(4);
    let mut model = Model::default();
    while !matches!(model.put(&log, 5000), Err(AppendError::Full)) {
        log.commit(log.marks().tail).expect("the disk is sound");
    }
    let durable = log.marks().durable;
    log.mark(durable).expect("marks have room in a full ring");
    let told = log.wait_for_room(5000, Duration::from_millis(1));
    assert!(matches!(told, Err(AppendError::Full)), "patience has an end: {told:?}");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| log.wait_for_room(5000, Duration::MAX));
        log.release(durable);
        waiter.join().expect("no panic").expect("the ring was released");
    });
    model.put(&log, 5000).expect("it was waited for");
}

#[test]
fn a_closed_log_opens_clean_and_complete() {
    let (files, _region, log) = new_log(5);
    let mut model = Model::default();
    for bytes in [100, 5000, 12_000] {
        model.put(&log, bytes).expect("there is room");
    }
    log.close().expect("the disk is sound");
    model.note(&log);
    drop(log);
    let image = files.after_power_cut_in(Mood::LoseAll, 0);
    let (log, recovery) = open_with(&image, region()).expect("it was closed");
    assert_eq!((recovery.source, recovery.verdict), (Source::Segments, Verdict::Clean));
    assert_eq!(recovery.durable, recovery.tail);
    model.check(&log, true).expect("all of it");
}

#[test]
fn a_commit_costs_one_write_and_one_sync_when_segments_were_prepared() {
    let (files, region, log) = new_log(6);
    let mut model = Model::default();
    for _ in 0..100 {
        while log.prepare().expect("the disk is sound") {
            log.commit(log.marks().tail).expect("the disk is sound");
        }
        model.put(&log, 3000).expect("there is room");
        let before = files.operations();
        log.commit(log.marks().tail).expect("the disk is sound");
        let spans = files.operations() - before;
        assert!(spans == 2 || spans == 4, "{spans} operations"); // 4: a pad closed a span before
        model.apply(&log).expect("there is room");
    }
    assert_eq!(word(&region, words::PREPARED_LATE), 0);
}

#[test]
fn segments_are_recycled_when_the_reader_keeps_up_and_added_when_it_does_not() {
    let (files, _region, log) = new_log(7);
    let mut model = Model::default();
    let count = |files: &dyn holdfast_io::Files| {
        files.read_dir(std::path::Path::new("")).expect("a directory").len()
    };
    for _ in 0..200 {
        model.put_surely(&log, 3000).expect("the disk is sound");
        log.commit(log.marks().tail).expect("the disk is sound");
        model.apply(&log).expect("there is room");
        log.prepare().expect("the disk is sound");
    }
    assert!(count(&files) <= 8, "{} files", count(&files)); // with up to four segments
    while !matches!(model.put(&log, 3000), Err(AppendError::Full)) {
        log.commit(log.marks().tail).expect("segments are added");
    }
    assert!(count(&files) >= 5, "{} files", count(&files));
}

#[test]
fn an_idle_log_covers_its_last_frame_and_then_rests() {
    let (_files, region, log) = new_log(8);
    let mut model = Model::default();
    model.put(&log, 100).expect("there is room");
    log.commit(log.marks().tail).expect("the disk is sound");
    let end = model.puts[0].end.get();
    for _ in 0..10 {
        log.prepare().expect("the disk is sound");
        log.drain().expect("the disk is sound");
    }
    assert!(word(&region, words::COVERED) >= end);
    let rested = log.marks();
    for _ in 0..10 {
        assert!(!log.prepare().expect("the disk is sound"));
        assert_eq!(log.drain().expect("the disk is sound").bytes, 0);
    }
    assert_eq!(log.marks(), rested);
}

#[test]
fn drain_work_is_announced_and_ends() {
    let (_files, _region, log) = new_log(9);
    while log.drain().expect("the disk is sound").bytes > 0 {}
    assert!(!log.wait_for_drain_work(Duration::ZERO));
    log.append(1, &[b"work"]).expect("there is room");
    assert!(log.wait_for_drain_work(Duration::from_secs(60)));
    assert!(log.drain().expect("the disk is sound").bytes >= 4096);
    assert!(matches!(log.health(), Health::Sound));
}

#[test]
fn a_mark_that_says_nothing_new_takes_no_room() {
    let (_files, _region, log) = new_log(4);
    log.append(1, &[b"a"]).expect("the log is empty");
    log.commit(log.marks().tail).expect("the disk is sound");
    let durable = log.marks().durable;
    log.mark(durable).expect("marks have room");
    let tail = log.marks().tail;
    assert!(tail > durable, "the first mark is a frame");
    log.mark(durable).expect("a repeated mark is fine");
    assert_eq!(log.marks().tail, tail);
}

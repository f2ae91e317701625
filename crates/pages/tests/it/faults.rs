//! Logs that fail, and disks that are full.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_io::fake::{EIO, Effect, Fault, Mood, Operation, Random};
use holdfast_io::{Files, errno};
use holdfast_pages::{FlushError, Poisoned, ReleaseError, StageError, SyncError};

use crate::support::{World, frames, groups, new_world, open, put, replay, seeds};

/// Everything says that the log has failed, and what was durable still is.
fn assert_poisoned(world: &World) {
    let stream = &world.stream;
    assert!(matches!(put(stream, 9, 1, 0), Err(StageError::Poisoned(_))));
    assert!(matches!(stream.flush(), Err(FlushError::Poisoned(_))));
    if stream.durable() < stream.next() {
        assert!(matches!(stream.sync(stream.next()), Err(SyncError::Poisoned(_))));
    }
    stream.sync(stream.durable()).expect("what was durable stays durable");
}

#[test]
fn a_failed_write_is_final() {
    let world = new_world(1);
    let (_, first) = put(&world.stream, 1, 1, 100).expect("it fits");
    world.stream.sync(first).expect("the disk is sound");
    let (_, end) = put(&world.stream, 2, 1, 100).expect("it fits");
    for operation in [Operation::Write, Operation::SyncData] {
        world.files.fail(Fault { operation, skip: 0, effect: Effect::Errno(EIO) });
    }
    let failed = world.stream.sync(end);
    let Err(SyncError::Poisoned(Poisoned(error))) = failed else { panic!("{failed:?}") };
    assert_eq!(errno(&error), Some(EIO));
    world.files.forget_faults();
    assert_poisoned(&world);
    assert_eq!((world.stream.durable(), world.stream.stable()), (first, end));
    let released = world.stream.release(end);
    assert!(matches!(released, Err(ReleaseError::Poisoned(_))), "{released:?}");
    drop(world.stream);
    let world = open(&world.files).expect("a new region is filled from what is durable");
    assert_eq!(groups(&frames(&*world.log)).expect("whole").first().map(|group| group.0), Some(1));
    put(&world.stream, 3, 1, 0).expect("it is another stream");
    world.stream.sync(world.stream.next()).expect("the disk is sound again");
}

#[test]
fn a_log_without_room_keeps_what_was_put_until_there_is_some() {
    let world = new_world(2);
    let enough = Arc::new(AtomicBool::new(false));
    let (asked, weak) = (Arc::clone(&enough), Arc::downgrade(&world.stream));
    world.stream.make_room_by(move |_| {
        if !asked.load(Ordering::Relaxed) {
            return Err(Arc::new(io::Error::other("there is nowhere to put it")));
        }
        let stream = weak.upgrade().expect("it is the one that asks");
        stream.release(stream.stable()).map_err(|error| Arc::new(io::Error::other(error)))
    });
    let mut numbers = 0..;
    let refused = loop {
        put(&world.stream, numbers.next().expect("there are many"), 1, 9000).expect("it fits");
        if let Err(error) = world.stream.flush() {
            break error;
        }
    };
    assert!(matches!(refused, FlushError::Full(_)), "{refused:?}");
    assert!(world.stream.is_pressed());
    let stable = world.stream.stable();
    let (_, end) = put(&world.stream, numbers.start, 1, 0).expect("the stage has room");
    assert!(matches!(world.stream.sync(end), Err(SyncError::Full(_))));
    enough.store(true, Ordering::Relaxed);
    world.stream.sync(end).expect("room is made");
    assert!(!world.stream.is_pressed());
    let found = groups(&frames(&*world.log)).expect("whole");
    assert_eq!((found.len(), found[0].1, found[1].0), (2, stable, numbers.start));
}

#[test]
fn a_full_disk_is_told_and_nothing_is_lost() {
    let world = new_world(3);
    let space = world.files.space().expect("it says how much");
    world.files.set_capacity_bytes(Some(space.total_bytes - space.free_bytes));
    // Nothing is released, so the two segments fill up and no third can be made.
    let mut number = 0;
    let refused = loop {
        put(&world.stream, number, 1, 3000).expect("it fits");
        number += 1;
        if let Err(error) = world.stream.sync(world.stream.next()) {
            break error;
        }
    };
    assert!(matches!(refused, SyncError::Unprepared(_)), "{refused:?}");
    world.files.set_capacity_bytes(None);
    world.stream.sync(world.stream.next()).expect("space has returned");
    assert_eq!(groups(&frames(&*world.log)).expect("whole").len(), number as usize);
}

/// One of what users of a stream do, on a disk that may be full. Returns what was said to be lost
/// for good, which nothing is.
fn step(world: &World, random: &mut Random, number: u64) -> Option<Poisoned> {
    let stream = &world.stream;
    match random.below(8) {
        0 => {
            let space = world.files.space().expect("it says how much");
            let is_full = random.below(2) == 0;
            let used_bytes = space.total_bytes - space.free_bytes;
            world.files.set_capacity_bytes(is_full.then_some(used_bytes));
        }
        1 | 2 => {
            if let Err(SyncError::Poisoned(poisoned)) = stream.sync(stream.next()) {
                return Some(poisoned);
            }
        }
        3..=5 => {
            // Little at a time: each mark takes room in the ring, until there is none for marks.
            let mut ends = frames(&*world.log).into_iter().map(|frame| frame.place.end);
            let upto = ends.next().filter(|end| *end <= stream.durable());
            let released = upto.map_or(Ok(()), |upto| stream.release(upto));
            if let Err(ReleaseError::Poisoned(poisoned)) = released {
                return Some(poisoned);
            }
        }
        _ => {
            put(stream, number, 1, random.below(300) as usize).expect("it fits");
            if let Err(FlushError::Poisoned(poisoned)) = stream.flush() {
                return Some(poisoned);
            }
        }
    }
    None
}

#[test]
fn a_disk_that_is_full_now_and_then_poisons_nothing() {
    for seed in seeds(10) {
        let (world, mut random) = (new_world(seed), Random::new(seed));
        let nowhere = |_| Err(Arc::new(io::Error::other("there is nowhere to put it")));
        world.stream.make_room_by(nowhere);
        for number in 0..4000 {
            let poisoned = step(&world, &mut random, number);
            let told = || replay("a_disk_that_is_full_now_and_then", seed);
            assert!(poisoned.is_none(), "step {number}: {poisoned:?}\n{}", told());
        }
        world.files.set_capacity_bytes(None);
        while let Err(error) = world.stream.sync(world.stream.next()) {
            assert!(matches!(error, SyncError::Full(_)), "there is space: {error}");
            world.stream.sync(world.stream.stable()).expect("there is space");
            world.stream.release(world.stream.stable()).expect("there is space");
        }
        let kept = groups(&frames(&*world.log)).expect("whole");
        let after = open(&world.files.after_power_cut_in(Mood::LoseAll, seed)).expect("a log");
        let found = groups(&frames(&*after.log)).expect("whole");
        // A release that was refused may have been marked all the same.
        let told = replay("a_disk_that_is_full_now_and_then", seed);
        assert!(kept.ends_with(&found) && found.last() == kept.last(), "{told}\n{kept:?}");
    }
}

//! Calls that fail, once, anywhere.

use std::sync::Arc;
use std::time::Duration;

use holdfast_io::fake::{EINTR, EIO, ENOSPC, Effect, FakeFiles, Fault, Mood, Operation, Random};
use holdfast_log::{AppendError, CommitError, Health, Log, OpenError};

use crate::support::{
    CONFIG, Failure, IDENTITY, Model, contents, new_log, open_with, region, replay, seeds, step,
};

/// Runs a workload; unprepared segments are tried again, everything else ends it.
fn work(files: &FakeFiles, model: &mut Model, seed: u64) -> Result<(), Failure> {
    if matches!(Log::identity_of(files), Err(OpenError::NoLog)) {
        Log::create(files, IDENTITY, &CONFIG).map_err(Failure::Create)?;
    }
    let (log, recovery) = open_with(files, region()).map_err(Failure::Open)?;
    model.check(&log, false).map_err(Failure::Wrong)?;
    model.adopt(&log, &recovery);
    let mut random = Random::new(seed);
    for _ in 0..60 {
        match step(model, &log, &mut random) {
            Ok(()) | Err(Failure::Commit(CommitError::Unprepared(_))) => {}
            Err(failure) => {
                check_poisoned(&log, model, &failure);
                return Err(failure);
            }
        }
    }
    let closed = log.close().map_err(Failure::Commit);
    model.note(&log);
    closed
}

/// A poisoned log refuses everything, keeps its marks, and can still be read.
fn check_poisoned(log: &Log, model: &Model, failure: &Failure) {
    assert!(matches!(log.health(), Health::Poisoned(_)), "{failure:?}");
    let marks = log.marks();
    let refused = log.append(1, &[b"more"]);
    assert!(matches!(refused, Err(AppendError::Poisoned(_))), "{refused:?}");
    assert!(matches!(log.wait_for_room(8, Duration::MAX), Err(AppendError::Poisoned(_))));
    assert!(matches!(log.drain(), Err(CommitError::Poisoned(_))));
    if marks.durable < marks.tail {
        assert!(matches!(log.commit(marks.tail), Err(CommitError::Poisoned(_))));
    }
    log.commit(marks.durable).expect("what was durable stays durable");
    assert_eq!(log.marks(), marks);
    model.check(log, true).expect("the ring still has everything");
}

/// Every place at which this fault can strike, one after the other.
fn strike_everywhere(operation: Operation, effect: Effect) -> u64 {
    let mut struck = 0;
    for seed in seeds(2) {
        for skip in 0.. {
            let files = FakeFiles::new(seed);
            files.fail(Fault { operation, skip, effect });
            let mut model = Model::default();
            let mut outcome = work(&files, &mut model, seed);
            if files.faults_fired() == 0 {
                break;
            }
            struck += 1;
            let told = replay("faults", seed);
            if matches!(effect, Effect::Short | Effect::Errno(EINTR)) && is_transfer(operation) {
                assert!(outcome.is_ok(), "{operation:?} {skip}: {outcome:?}; {told}");
            }
            for (round, mood) in [Mood::LoseAll, Mood::KeepAll, Mood::Scatter].iter().enumerate() {
                let image = files.after_power_cut_in(*mood, seed + skip);
                let mut model = model.clone();
                outcome = work(&image, &mut model, seed + round as u64);
                assert!(outcome.is_ok(), "{operation:?} {skip} {mood:?}: {outcome:?}; {told}");
            }
        }
    }
    struck
}

fn is_transfer(operation: Operation) -> bool {
    matches!(operation, Operation::Read | Operation::Write)
}

#[test]
fn a_call_that_fails_anywhere_loses_nothing_acknowledged() {
    use Operation::{Metadata, Open, Read, ReadDir, SetLen, SyncData, SyncDir, Write};
    let all = [Metadata, Open, Read, ReadDir, SetLen, SyncData, SyncDir, Write];
    for operation in all {
        for errno in [EIO, ENOSPC, EINTR] {
            let struck = strike_everywhere(operation, Effect::Errno(errno));
            assert!(struck > 0, "{operation:?} was never struck");
            println!("{operation:?} errno {errno}: {struck} places");
        }
    }
}

/// A log grows, and its process ends when that was refused so often.
fn grow(files: &FakeFiles, model: &mut Model, refusals: u64, seed: u64) -> Result<(), Failure> {
    let (log, recovery) = open_with(files, region()).map_err(Failure::Open)?;
    model.check(&log, false).map_err(Failure::Wrong)?;
    model.adopt(&log, &recovery);
    let applied = model.apply(&log);
    let (mut random, mut refused) = (Random::new(seed), u64::from(applied.is_err()));
    for _ in 0..36 {
        let bytes = random.below(6_000) as usize;
        let put = model.put_surely_unread(&log, bytes);
        let done = put.and_then(|()| match random.chance(30) {
            true => log.prepare().map(drop).map_err(Failure::Commit),
            false => log.commit(log.marks().tail).map_err(Failure::Commit),
        });
        model.note(&log);
        refused += u64::from(done.is_err());
        match done {
            Err(Failure::Commit(CommitError::Unprepared(_))) if refused < refusals => {}
            done => done?,
        }
    }
    model.apply(&log)
}

/// A device that refuses so many writes in a row, from any one on, and takes all of them later: the
/// file system is kept, with whatever reached it.
fn refused_for_a_while(seed: u64, in_a_row: u64) -> u64 {
    for skip in 0.. {
        let files = FakeFiles::new(seed);
        let mut model = Model::default();
        Log::create(&files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
        let fault = Fault { operation: Operation::Write, skip, effect: Effect::Errno(ENOSPC) };
        (0..in_a_row).for_each(|_| files.fail(fault));
        let _ = grow(&files, &mut model, in_a_row, seed);
        if files.faults_fired() == 0 {
            return skip;
        }
        files.forget_faults();
        let image = files.after_power_cut_in(Mood::KeepAll, 0);
        let told = format!(
            "{in_a_row} writes from {skip} on; {}",
            replay("a_device_that_refuses_writes_for_a_while", seed)
        );
        let looked = Log::verify(&image, &mut |_| {});
        assert!(looked.is_ok(), "{looked:?}; {told}");
        let outcome = grow(&image, &mut model, 1, seed + 1);
        assert!(outcome.is_ok(), "{outcome:?}; {told}");
    }
    unreachable!("it ends")
}

#[test]
fn a_device_that_refuses_writes_for_a_while_takes_no_file_that_a_catalogue_names() {
    let mut struck = 0;
    for seed in seeds(2) {
        struck += (2..=3).map(|in_a_row| refused_for_a_while(seed, in_a_row)).sum::<u64>();
    }
    println!("{struck} places");
}

#[test]
fn pitfall_03_short_transfers_are_continued() {
    for operation in [Operation::Read, Operation::Write] {
        let struck = strike_everywhere(operation, Effect::Short);
        assert!(struck > 0);
        println!("{operation:?} short: {struck} places");
    }
}

#[test]
fn pitfall_01_a_failed_sync_is_final() {
    let struck = strike_everywhere(Operation::SyncData, Effect::DropsDirty);
    assert!(struck > 0);
    println!("{struck} places");
}

#[test]
fn pitfall_02_every_waiter_of_a_failed_sync_is_told() {
    let (files, _region, log) = new_log(1);
    let log = Arc::new(log);
    while log.drain().expect("the disk is sound").bytes > 0 {}
    let ends: Vec<_> =
        (0..8).map(|_| log.append(1, &[&[1; 500]]).expect("there is room").end).collect();
    let effect = Effect::DropsDirty;
    files.fail(Fault { operation: Operation::SyncData, skip: 0, effect });
    std::thread::scope(|scope| {
        for end in &ends {
            let log = &log;
            scope.spawn(move || {
                for _ in 0..3 {
                    let told = log.commit(*end);
                    assert!(matches!(told, Err(CommitError::Poisoned(_))), "{told:?}");
                }
            });
        }
    });
    assert_eq!(files.faults_fired(), 1);
    assert_eq!(contents(&log).len(), 8);
}

#[test]
fn a_poisoned_log_opens_poisoned_again_and_can_be_read() {
    let (files, region, log) = new_log(3);
    let mut model = Model::default();
    model.put(&log, 3000).expect("there is room");
    files.fail(Fault { operation: Operation::Write, skip: 0, effect: Effect::Errno(EIO) });
    let told = log.commit(log.marks().tail);
    assert!(matches!(told, Err(CommitError::Poisoned(_))), "{told:?}");
    drop(log);
    let mut region = Arc::into_inner(region).expect("the log is gone");
    region.reattach().expect("the marks are in order");
    let (log, _) = open_with(&files, region).expect("what is in the ring can be rescued");
    match log.health() {
        Health::Poisoned(error) => assert_eq!(error.raw_os_error(), Some(EIO)),
        other => panic!("{other:?}"),
    }
    check_poisoned(&log, &model, &Failure::Wrong("reopened".to_owned()));
}

#[test]
fn a_full_disk_holds_writers_up_and_lets_them_go_on_when_space_returns() {
    let (files, _region, log) = new_log(2);
    let mut model = Model::default();
    let space = holdfast_io::Files::space(&files).expect("space");
    files.set_capacity_bytes(Some(space.total_bytes - space.free_bytes));
    // Nothing is released, so the two segments fill up and no third can be made.
    let refused = loop {
        match model.put_surely_unread(&log, 3000) {
            Ok(()) => {}
            Err(failure) => break failure,
        }
    };
    assert!(matches!(refused, Failure::Commit(CommitError::Unprepared(_))), "{refused:?}");
    assert!(matches!(log.health(), Health::Sound));
    files.set_capacity_bytes(None);
    log.commit(log.marks().tail).expect("space has returned");
    model.note(&log);
    model.check(&log, true).expect("all of it");
}

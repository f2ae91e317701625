//! A poisoned log whose device was seen to.

use std::sync::Arc;

use holdfast_io::Files;
use holdfast_io::fake::{EIO, Effect, FakeClock, FakeFiles, Fault, Mood, Operation, Random};
use holdfast_log::{Health, Log, Mended, OpenError};
use holdfast_memory::Region;

use crate::support::{
    CONFIG, Failure, Model, new_log, open_shared, open_with, region, replay, seeds, step,
};

fn mend(files: &FakeFiles, region: &Arc<Region>) -> Result<Mended, OpenError> {
    let files: Arc<dyn Files> = Arc::new(files.clone());
    Log::mend(files, Arc::clone(region), Arc::new(FakeClock::default()), CONFIG)
}

/// A log that worked until its device failed. None if this seed's work ended before that.
fn poisoned(seed: u64, skip: u64) -> Option<(FakeFiles, Arc<Region>, Model)> {
    let (files, region, log) = new_log(seed);
    let (operation, effect) = match seed.is_multiple_of(2) {
        true => (Operation::SyncData, Effect::DropsDirty),
        false => (Operation::Write, Effect::Errno(EIO)),
    };
    files.fail(Fault { operation, skip, effect });
    let (mut model, mut random) = (Model::default(), Random::new(seed));
    for _ in 0..60 {
        // Whatever fails is seen in the health; the model keeps what was accepted.
        let _ = step(&mut model, &log, &mut random);
        if matches!(log.health(), Health::Poisoned(_)) {
            drop(log);
            return Some((files, region, model));
        }
    }
    None
}

/// The region as the next process finds it.
fn reattached(region: Arc<Region>) -> Arc<Region> {
    let mut region = Arc::into_inner(region).expect("the log is gone");
    region.reattach().expect("the marks are in order");
    Arc::new(region)
}

#[test]
fn a_mended_log_has_everything_and_goes_on() {
    for seed in seeds(8) {
        for skip in 0..12 {
            let _told = replay("a_mended_log_has_everything_and_goes_on", seed);
            let Some((files, region, mut model)) = poisoned(seed, skip) else { continue };
            let region = reattached(region);
            mend(&files, &region).expect("the device works again");
            let (log, _) = open_shared(&files, &region).expect("it opens");
            assert!(matches!(log.health(), Health::Sound));
            model.check(&log, true).expect("the ring has everything");
            model.put(&log, 500).expect("it accepts frames");
            log.commit(log.marks().tail).expect("it drains");
            drop(log);
            let cut = files.after_power_cut_in(Mood::LoseAll, seed);
            let (log, _) = open_with(&cut, self::region()).expect("it opens from the device");
            model.check(&log, true).expect("the device has everything");
        }
    }
}

#[test]
fn power_cut_right_after_a_mend_loses_nothing_that_was_durable() {
    for seed in seeds(8) {
        for skip in 0..12 {
            let _told = replay("power_cut_right_after_a_mend_loses", seed);
            let Some((files, region, model)) = poisoned(seed, skip) else { continue };
            mend(&files, &reattached(region)).expect("the device works again");
            let cut = files.after_power_cut_in(Mood::LoseAll, seed);
            let (log, _) = open_with(&cut, self::region()).expect("it opens from the device");
            model.check(&log, false).expect("what was durable is there");
        }
    }
}

#[test]
fn a_device_that_fails_again_leaves_the_log_poisoned() {
    let (files, region, mut model) = {
        let (files, region, log) = new_log(1);
        let mut model = Model::default();
        model.put(&log, 3000).expect("there is room");
        log.commit(log.marks().tail).expect("it drains");
        model.put(&log, 3000).expect("there is room");
        files.fail(Fault { operation: Operation::SyncData, skip: 0, effect: Effect::DropsDirty });
        log.commit(log.marks().tail).expect_err("the device fails");
        (files, region, model)
    };
    let region = reattached(region);
    // The first reads are of the two catalogues, one of which is enough, and of a header.
    for (operation, skip) in [(Operation::Write, 0), (Operation::SyncData, 0), (Operation::Read, 3)]
    {
        files.fail(Fault { operation, skip, effect: Effect::Errno(EIO) });
        let told = mend(&files, &region);
        assert!(matches!(told, Err(OpenError::Io(_))), "{operation:?}: {told:?}");
        assert_eq!(files.faults_waiting(), 0, "{operation:?}");
    }
    let mended = mend(&files, &region).expect("the device works again");
    assert!(mended.rewritten_bytes > 0 && mended.undrained_bytes > 0, "{mended:?}");
    let again = mend(&files, &region).expect("there is nothing left to do");
    assert_eq!(again, Mended { rewritten_bytes: 0, undrained_bytes: 0 });
    let (log, _) = open_shared(&files, &region).expect("it opens");
    model.put(&log, 500).map_err(Failure::Append).expect("it accepts frames");
    model.check(&log, true).expect("the ring has everything");
}

//! The power is cut at every I/O, and the disk tears, loses and reorders what was not synced.

use holdfast_io::fake::{FakeFiles, Random, Sectors};
use holdfast_log::{Log, OpenError};

use crate::device::at_every_power_cut;
use crate::support::{CONFIG, Failure, IDENTITY, Model, open_with, region, replay, seeds, step};

/// Makes the log unless it is there, opens it, checks it against the model, works on it, closes it.
pub(crate) fn life(
    files: &FakeFiles,
    model: &mut Model,
    seed: u64,
    steps: u64,
) -> Result<(), Failure> {
    match Log::identity_of(files) {
        Ok(identity) => assert_eq!(identity, IDENTITY),
        Err(OpenError::NoLog) if model.next == 0 => {
            Log::create(files, IDENTITY, &CONFIG).map_err(Failure::Create)?;
        }
        Err(error) => return Err(Failure::Open(error)),
    }
    let (log, recovery) = open_with(files, region()).map_err(Failure::Open)?;
    model.check(&log, false).map_err(Failure::Wrong)?;
    model.adopt(&log, &recovery);
    assert!(recovery.durable <= recovery.tail);
    let mut random = Random::new(seed);
    for _ in 0..steps {
        step(model, &log, &mut random)?;
    }
    let closed = log.close().map_err(Failure::Commit);
    model.note(&log);
    closed
}

#[test]
fn what_was_durable_is_there_after_a_power_cut_at_any_io() {
    let mut images = 0;
    for seed in seeds(12) {
        println!("{}", replay("what_was_durable_is_there", seed));
        let live = |files: &FakeFiles, model: &mut Model, seed, steps| {
            let ended = life(files, model, seed, steps);
            let failure = ended.err().inspect(|error| assert!(error.is_power_cut(), "{error:?}"));
            failure.is_none().then_some(())
        };
        images += at_every_power_cut(
            seed,
            |files, model: &mut Model| live(files, model, seed, 60),
            |image, model, _| live(image, model, seed + 1, 6),
        );
    }
    println!("{images} images recovered");
}

#[test]
fn several_power_cuts_in_a_row_lose_nothing_durable() {
    let mut images = 0;
    for seed in seeds(1500) {
        let mut random = Random::new(seed);
        let mut files = FakeFiles::new(seed);
        let mut model = Model::default();
        for _ in 0..5 {
            files.set_sectors(if random.chance(50) { Sectors::Garbage } else { Sectors::Whole });
            files.cut_power_at(files.operations() + 1 + random.below(90));
            let outcome = life(&files, &mut model, random.any(), 50);
            let cut = outcome.as_ref().err().is_none_or(Failure::is_power_cut);
            assert!(cut, "{outcome:?}; {}", replay("several_power_cuts", seed));
            files = files.after_power_cut(random.any());
            images += 1;
        }
        let last = life(&files, &mut model, seed, 0);
        assert!(last.is_ok(), "{last:?}; {}", replay("several_power_cuts", seed));
    }
    println!("{images} images recovered");
}

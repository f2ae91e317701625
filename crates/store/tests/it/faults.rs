//! The machine refuses one call, whichever it is, and a store says so or does without.

use holdfast_io::fake::{EIO, ENOSPC, Effect, FakeFiles, Fault, Mood, Operation};

use crate::life::life;
use crate::model::Model;
use crate::power::with_seeds;
use crate::support::machine;

/// Steps of a life that meets a fault.
const STEPS: u32 = 200;
/// Steps of one that goes on after it.
const STEPS_AFTER: u32 = 20;

const EFFECTS: [(Operation, Effect); 16] = [
    (Operation::Open, Effect::Errno(EIO)),
    (Operation::Metadata, Effect::Errno(EIO)),
    (Operation::ReadDir, Effect::Errno(EIO)),
    (Operation::Rename, Effect::Errno(ENOSPC)),
    (Operation::RemoveFile, Effect::Errno(EIO)),
    (Operation::SyncDir, Effect::Errno(EIO)),
    (Operation::Read, Effect::Errno(EIO)),
    (Operation::Read, Effect::Short),
    (Operation::Write, Effect::Errno(EIO)),
    (Operation::Write, Effect::Errno(ENOSPC)),
    (Operation::Write, Effect::Short),
    (Operation::SyncData, Effect::Errno(EIO)),
    (Operation::SyncData, Effect::DropsDirty),
    (Operation::SetLen, Effect::Errno(ENOSPC)),
    (Operation::Reserve, Effect::Errno(ENOSPC)),
    (Operation::Punch, Effect::Errno(EIO)),
];

/// A life that ends with the first error, and lives after it: of a process that comes back, and of
/// one that comes back after a power cut. None if the fault did not strike.
fn strike(seed: u64, fault: Fault) -> Option<u64> {
    let (files, mut model) = (machine(seed), Model::default());
    files.fail(fault);
    let end = life(&files, &mut model, seed, STEPS);
    if files.faults_fired() == 0 {
        end.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        return None;
    }
    for mood in [Mood::LoseAll, Mood::Scatter] {
        live_on(&files.after_power_cut_in(mood, seed), model.clone(), seed, fault);
    }
    live_on(&files, model, seed, fault);
    Some(3)
}

fn live_on(files: &FakeFiles, mut model: Model, seed: u64, fault: Fault) {
    let end = life(files, &mut model, seed, STEPS_AFTER);
    end.unwrap_or_else(|error| panic!("seed {seed} after {fault:?}: {error}"));
}

/// Refuses every call of a life, one life each. Returns how many lives came after.
fn strike_everywhere(seed: u64) -> u64 {
    let each = |(operation, effect)| {
        let fault = |skip| Fault { operation, skip, effect };
        (0..).map_while(|skip| strike(seed, fault(skip))).sum::<u64>()
    };
    EFFECTS.into_iter().map(each).sum()
}

#[test]
fn what_was_acknowledged_is_there_after_any_call_of_the_machine_failed() {
    with_seeds(1..4, "faults::what_was", strike_everywhere);
}

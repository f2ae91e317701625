//! The power is cut at every I/O, and the disk tears, loses and reorders what was not synced.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use holdfast_io::fake::{FakeFiles, Mood, Sectors};

use crate::life::{World, life};
use crate::support::{factor, machine};

const STEPS: u32 = 60;
const STEPS_AFTER: u32 = 5;
const MOODS: [Mood; 4] = [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter];

/// A whole life on a new machine. Returns how many I/Os that took.
fn live(seed: u64) -> u64 {
    let (files, mut world) = (machine(seed), World::default());
    life(&files, &mut world, seed, STEPS).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    files.operations()
}

/// A life until the power is cut, and then one on what is left, in every mood.
fn cut(seed: u64, at: u64) -> u64 {
    let (files, mut world) = (machine(seed), World::default());
    files.set_sectors(if at.is_multiple_of(3) { Sectors::Garbage } else { Sectors::Whole });
    files.cut_power_at(at);
    let end = life(&files, &mut world, seed, STEPS);
    assert!(end.is_err(), "seed {seed} cut {at}: it had an end");
    for mood in MOODS {
        let (left, mut world): (FakeFiles, _) =
            (files.after_power_cut_in(mood, seed ^ at), world.clone());
        let end = life(&left, &mut world, seed ^ at, STEPS_AFTER);
        assert!(end.is_ok(), "seed {seed} cut {at} {mood:?}: {end:?}");
    }
    MOODS.len() as u64
}

/// Cuts the power at every I/O of a life. Returns how many disks were recovered.
fn cut_everywhere(seed: u64) -> u64 {
    let before = machine(seed).operations();
    (before + 1..=live(seed)).map(|at| cut(seed, at)).sum()
}

/// Does it with each seed, or with the one that is asked for, and says how a failure is seen again.
pub(crate) fn with_seeds(seeds: Range<u64>, test: &str, run: fn(u64) -> u64) {
    let end = seeds.start + (seeds.end - seeds.start) * factor();
    let asked_for = std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = asked_for.map_or(seeds.start..end, |seed: u64| seed..seed + 1);
    let mut count = 0;
    for seed in seeds {
        match catch_unwind(AssertUnwindSafe(|| run(seed))) {
            Ok(more) => count += more,
            Err(panic) => {
                println!("HOLDFAST_SEED={seed} cargo test -p holdfast-table --test it {test}");
                resume_unwind(panic);
            }
        }
    }
    println!("{test}: {count} tried");
}

#[test]
fn what_was_answered_is_there_once_after_a_power_cut_at_any_io() {
    with_seeds(1..4, "power::what_was", cut_everywhere);
}

#[test]
fn answers_are_those_of_a_list_of_rows() {
    with_seeds(1_001..1_101, "power::answers_are", |seed| {
        let (files, mut world) = (machine(seed), World::default());
        for life_of in 0..3 {
            let end = life(&files, &mut world, seed * 3 + life_of, 150);
            assert!(end.is_ok(), "seed {seed}: {end:?}");
        }
        3
    });
}

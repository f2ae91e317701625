//! The power is cut at every I/O, and the disk tears, loses and reorders what was not synced.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use holdfast_io::fake::{FakeFiles, Mood, Random, Sectors};
use holdfast_pages::canary::{Invariant, switch_off};

use crate::life::life;
use crate::model::Model;
use crate::support::{factor, machine};

/// Steps of a life that is cut.
const STEPS: u32 = 300;
/// Steps of one that goes on after a cut.
const STEPS_AFTER: u32 = 10;

const MOODS: [Mood; 4] = [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter];

/// A disk as it is, and what a store on it should hold.
struct Image {
    files: FakeFiles,
    model: Model,
}

impl Image {
    fn new(seed: u64) -> Image {
        Image { files: machine(seed), model: Model::default() }
    }

    /// A whole life on it. Returns how many I/Os that took.
    fn live(self, seed: u64, steps: u32) -> u64 {
        let Image { files, mut model } = self;
        let before = files.operations();
        let end = life(&files, &mut model, seed, steps);
        assert!(end.is_ok(), "seed {seed}: {end:?}");
        files.operations() - before
    }

    /// A life until the power is cut, `at` I/Os from now.
    fn cut(self, seed: u64, steps: u32, at: u64) -> Image {
        let Image { files, mut model } = self;
        let at = files.operations() + at;
        files.set_sectors(if at.is_multiple_of(3) { Sectors::Garbage } else { Sectors::Whole });
        files.cut_power_at(at);
        let end = life(&files, &mut model, seed, steps);
        assert!(end.is_err() && files.operations() >= at, "seed {seed} cut {at}: {end:?}");
        Image { files, model }
    }

    /// The disk as it may be when the power is back.
    fn after(&self, mood: Mood, seed: u64) -> Image {
        let files = self.files.after_power_cut_in(mood, seed);
        Image { files, model: self.model.clone() }
    }

    /// Lives on what is left, in every mood. Returns how many that were.
    fn live_on(&self, seed: u64) -> u64 {
        for mood in MOODS {
            self.after(mood, seed).live(seed, STEPS_AFTER);
        }
        MOODS.len() as u64
    }
}

/// Cuts the power at every I/O of a life. Returns how many disks were recovered.
fn cut_everywhere(seed: u64) -> u64 {
    let cuts = 1..=Image::new(seed).live(seed, STEPS);
    cuts.map(|at| Image::new(seed).cut(seed, STEPS, at).live_on(seed ^ at)).sum()
}

/// Cuts the power once, and then at every I/O of the life after that. Returns how many disks were
/// recovered.
fn cut_twice(seed: u64) -> u64 {
    let at = 1 + Random::new(seed).below(Image::new(seed).live(seed, STEPS));
    let first = Image::new(seed).cut(seed, STEPS, at);
    let again = || first.after(MOODS[seed as usize % MOODS.len()], seed);
    let cuts = 1..=again().live(seed, STEPS_AFTER);
    cuts.map(|at| again().cut(seed, STEPS_AFTER, at).live_on(seed ^ at)).sum()
}

/// Does it with each seed, or with the one that is asked for, and says how a failure is seen again.
pub(crate) fn with_seeds(seeds: Range<u64>, test: &str, run: fn(u64) -> u64) {
    let end = seeds.start + (seeds.end - seeds.start) * factor();
    let asked_for = std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = asked_for.map_or(seeds.start..end, |seed: u64| seed..seed + 1);
    let mut images = 0;
    for seed in seeds {
        match catch_unwind(AssertUnwindSafe(|| run(seed))) {
            Ok(more) => images += more,
            Err(panic) => {
                println!("HOLDFAST_SEED={seed} cargo test -p holdfast-store --test it {test}");
                resume_unwind(panic);
            }
        }
    }
    println!("{images} images recovered");
}

#[test]
fn what_was_acknowledged_is_there_after_a_power_cut_at_any_io() {
    with_seeds(1..17, "power::what_was", cut_everywhere);
}

#[test]
fn it_is_there_after_power_cuts_at_any_io_of_restarts() {
    with_seeds(1_001..1_041, "power::it_is", cut_twice);
}

/// Whether cuts at every I/O are noticed once this invariant is switched off.
fn is_noticed(invariant: Invariant) -> bool {
    let _off = switch_off(invariant);
    catch_unwind(|| (1..9).map(cut_everywhere).sum::<u64>()).is_err()
}

#[test]
fn a_base_that_is_not_checked_would_be_noticed() {
    assert!(is_noticed(Invariant::BasesAreChecked));
}

#[test]
fn losers_that_are_not_locked_would_be_noticed() {
    assert!(is_noticed(Invariant::LosersAreLocked));
}

#[test]
fn windows_that_do_not_tile_would_be_noticed() {
    assert!(is_noticed(Invariant::WindowsTile));
}

#[test]
fn a_log_that_is_given_back_too_soon_would_be_noticed() {
    assert!(is_noticed(Invariant::ReleasedByTheLeast));
}

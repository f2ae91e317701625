//! The power is cut at every I/O, and the disk tears, loses and reorders what was not synced.

use std::ops::RangeInclusive;
use std::panic::catch_unwind;

use holdfast_io::fake::{FakeFiles, Mood, Random, Sectors};
use holdfast_pages::canary::{Invariant, switch_off};

use crate::life::life;
use crate::model::Known;
use crate::support::{factor, machine};

/// Steps of a life that is cut.
const STEPS: u64 = 400;
/// Steps of one that goes on after a cut.
const STEPS_AFTER: u64 = 10;

const MOODS: [Mood; 4] = [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter];

/// A disk as it is, and what is known of it.
struct Image {
    files: FakeFiles,
    known: Known,
}

impl Image {
    fn new(seed: u64) -> Image {
        Image { files: machine(seed), known: Known::default() }
    }

    /// How many I/Os a whole life makes on it.
    fn operations_of(self, seed: u64, steps: u64) -> u64 {
        let before = self.files.operations();
        let (files, mut known) = (self.files, self.known);
        let end = life(&files, &mut known, &mut Random::new(seed), steps);
        assert!(end.is_ok(), "seed {seed}: {end:?}");
        files.operations() - before
    }

    /// A life until the power is cut, `at` I/Os from now.
    fn cut(self, seed: u64, steps: u64, at: u64) -> Image {
        let Image { files, mut known } = self;
        let at = files.operations() + at;
        files.set_sectors(if at % 3 == 0 { Sectors::Garbage } else { Sectors::Whole });
        files.cut_power_at(at);
        let end = life(&files, &mut known, &mut Random::new(seed), steps);
        assert!(end.is_err() && files.operations() >= at, "seed {seed} cut {at}: {end:?}");
        Image { files, known }
    }

    /// The disk as it may be when the power is back.
    fn after(&self, mood: Mood, seed: u64) -> Image {
        let files = self.files.after_power_cut_in(mood, seed);
        Image { files, known: self.known.clone() }
    }
}

/// Cuts the power at every I/O of a life with each seed, and opens what is left in every mood.
/// Returns how many disks were recovered.
fn cut_everywhere(seeds: RangeInclusive<u64>) -> u64 {
    let mut images = 0;
    for seed in seeds {
        for at in 1..=Image::new(seed).operations_of(seed, STEPS) {
            let cut = Image::new(seed).cut(seed, STEPS, at);
            for mood in MOODS {
                cut.after(mood, seed ^ at).operations_of(at, STEPS_AFTER);
                images += 1;
            }
        }
    }
    images
}

/// Cuts the power once, and then at every I/O of the life after that. Returns how many disks were
/// recovered.
fn cut_twice(seeds: RangeInclusive<u64>) -> u64 {
    let mut images = 0;
    for seed in seeds {
        let operations = Image::new(seed).operations_of(seed, STEPS);
        let at = 1 + Random::new(seed).below(operations);
        let first = Image::new(seed).cut(seed, STEPS, at);
        let again = || first.after(MOODS[seed as usize % MOODS.len()], seed);
        for at in 1..=again().operations_of(seed, STEPS_AFTER) {
            let second = again().cut(seed, STEPS_AFTER, at);
            for mood in MOODS {
                second.after(mood, seed ^ at).operations_of(at, STEPS_AFTER);
                images += 1;
            }
        }
    }
    images
}

#[test]
fn what_was_acknowledged_is_there_after_a_power_cut_at_any_io() {
    println!("{} images recovered", cut_everywhere(1..=4 * factor()));
}

#[test]
fn it_is_there_after_power_cuts_at_any_io_of_restarts() {
    println!("{} images recovered after two cuts", cut_twice(101..=100 + 6 * factor()));
}

/// Whether cuts at every I/O are noticed once this invariant is switched off.
fn is_noticed(invariant: Invariant) -> bool {
    let _off = switch_off(invariant);
    catch_unwind(|| cut_everywhere(1..=4)).is_err()
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

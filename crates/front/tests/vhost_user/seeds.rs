//! Randomness that can be repeated.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Numbers that a seed decides (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().unwrap())
}

/// Runs `body` for the seed in `HOLDFAST_SEED`, or for `count` from 1 on, or
/// `HOLDFAST_SEEDS_FACTOR` times as many. A failure says how to repeat it.
pub(crate) fn for_seeds(test: &str, count: u64, body: impl Fn(u64)) {
    let many = count * number("HOLDFAST_SEEDS_FACTOR").unwrap_or(1).max(1);
    let seeds = number("HOLDFAST_SEED").map_or(1..=many, |seed| seed..=seed);
    for seed in seeds {
        if let Err(failure) = catch_unwind(AssertUnwindSafe(|| body(seed))) {
            let (package, program) = (env!("CARGO_PKG_NAME"), env!("CARGO_CRATE_NAME"));
            println!("HOLDFAST_SEED={seed} cargo test -p {package} --test {program} {test}");
            resume_unwind(failure);
        }
    }
}

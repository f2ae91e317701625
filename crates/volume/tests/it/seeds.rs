//! Which seeds a test runs, and how a failure is replayed.
//!
//! `HOLDFAST_SEED=462` runs that seed alone; `HOLDFAST_SEEDS_FACTOR=20` runs twenty times as many.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs `each` for seeds that failed once, then for a range, and names the seed that fails.
pub(crate) fn for_each_seed(
    test: &str,
    once_failed: &[u64],
    range: Range<u64>,
    each: impl Fn(u64),
) {
    if let Some(seed) = number("HOLDFAST_SEED") {
        each(seed);
        return;
    }
    let factor = number("HOLDFAST_SEEDS_FACTOR").unwrap_or(1).max(1);
    let end = range.start + (range.end - range.start) * factor;
    for seed in once_failed.iter().copied().chain(range.start..end) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| each(seed))) {
            eprintln!(
                "seed {seed} failed; replay it: \
                 HOLDFAST_SEED={seed} cargo test -p holdfast-volume --test it {test}"
            );
            resume_unwind(panic);
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

//! A number that many threads count up, often.
//!
//! Promise: nothing that was counted is lost; threads that count at once do not wait for each
//! other's caches.
//! Never: is exact while somebody counts.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Threads beyond so many share a part.
const PARTS: usize = 16;

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static PART: usize = THREADS.fetch_add(1, Ordering::Relaxed) % PARTS;
}

/// A part with a line of a cache for itself.
#[derive(Default)]
#[repr(align(64))]
struct Part(AtomicU64);

/// What was counted.
#[derive(Default)]
pub(crate) struct Tally([Part; PARTS]);

impl Tally {
    /// Counts one more.
    #[inline]
    pub(crate) fn add(&self) {
        PART.with(|part| self.0[*part].0.fetch_add(1, Ordering::Relaxed));
    }

    /// What all threads have counted.
    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().map(|part| part.0.load(Ordering::Relaxed)).sum()
    }
}

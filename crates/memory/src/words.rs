//! Words of shared memory that are written by one side and then read by the other.
//!
//! Promise: each word is read or written once, whole; no value it may hold is invalid.
//! Never: orders anything: the word that hands them over does. Under loom the models put a cell in
//! its place that notices when nothing did.

use std::sync::atomic::Ordering;

use crate::atomics::AtomicU64;

/// That many words.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Words<const COUNT: usize>([AtomicU64; COUNT]);

impl<const COUNT: usize> Words<COUNT> {
    /// A copy of all of them.
    pub(crate) fn load(&self) -> [u64; COUNT] {
        std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed))
    }

    /// Writes all of them.
    pub(crate) fn store(&self, values: [u64; COUNT]) {
        for (word, value) in self.0.iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

#[cfg(model)]
impl<const COUNT: usize> Words<COUNT> {
    /// Zeros outside any mapping, for the models.
    pub(crate) fn new() -> Words<COUNT> {
        Words(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

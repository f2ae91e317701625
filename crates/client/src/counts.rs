//! Sums that people look at, gathered here so that a count costs no request.
//!
//! Promise: what was added is taken once, by whoever sends it.
//! Never: sends anything.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use holdfast_log::words::READER;

/// What was added to each of the reader's words since it was last taken.
#[derive(Debug)]
pub(crate) struct Counts {
    has_any: AtomicBool,
    added: [AtomicU64; READER.end - READER.start],
}

impl Default for Counts {
    fn default() -> Counts {
        Counts { has_any: AtomicBool::new(false), added: [const { AtomicU64::new(0) }; _] }
    }
}

impl Counts {
    /// Adds to the word of this index.
    ///
    /// # Panics
    /// If it is not the reader's.
    pub(crate) fn add(&self, index: usize, more: u64) {
        assert!(READER.contains(&index), "word {index} is not the reader's");
        self.added[index - READER.start].fetch_add(more, Ordering::Relaxed);
        self.has_any.store(true, Ordering::Relaxed);
    }

    /// Each word that something was added to, and how much.
    pub(crate) fn take(&self) -> impl Iterator<Item = (usize, u64)> {
        let has_any = self.has_any.swap(false, Ordering::Relaxed);
        let words = has_any.then(|| READER.zip(&self.added)).into_iter().flatten();
        let taken = words.map(|(index, added)| (index, added.swap(0, Ordering::Relaxed)));
        taken.filter(|(_, more)| *more > 0)
    }
}

#[cfg(test)]
mod tests;

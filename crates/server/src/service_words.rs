//! The words of a service that outlive the server.
//!
//! Promise: what is counted is in the service's region.
//! Never: decides what a word means; [`crate::words`] does.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_memory::Region;

/// The shared words of the region that has a service's state, by number: see [`crate::words`].
pub trait ServiceWords: Send + Sync {
    /// The word of this number.
    fn word(&self, index: usize) -> &AtomicU64;
}

impl ServiceWords for Region {
    fn word(&self, index: usize) -> &AtomicU64 {
        Region::word(self, index)
    }
}

impl dyn ServiceWords + '_ {
    /// Adds to one of the server's counters.
    pub(crate) fn count(&self, word: usize) {
        self.word(word).fetch_add(1, Ordering::Relaxed);
    }
}

//! What readers of an open log are told of its cuts.
//!
//! Promise: a reader that had gone beyond a cut learns of it before it reads on; one that had not
//! reads on, once the device has what is there now.
//! Never: keeps more than the cuts that still matter to somebody.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use holdfast_core::Lsn;

/// The cuts that were made while the log was open.
#[derive(Default)]
pub(crate) struct Cuts {
    /// Twice the number of cuts; one more while one is being made.
    count: AtomicU64,
    /// The count after a cut, and where that began; both ascend, for a cut hides those behind it.
    /// Locked through a whole cut.
    made: Mutex<Vec<(u64, Lsn)>>,
}

/// A cut that is being made. It counts as made when this is dropped.
pub(crate) struct Cutting<'a> {
    cuts: &'a Cuts,
    made: MutexGuard<'a, Vec<(u64, Lsn)>>,
}

impl Cuts {
    /// What a new reader has seen.
    pub(crate) fn seen(&self) -> u64 {
        // EDGE cut-counted: what is read after this was written before the cut, or is looked at
        // again because the number has changed.
        self.count.load(Ordering::Acquire) & !1
    }

    /// Whether a reader that has seen so much need not look.
    pub(crate) fn are_seen(&self, seen: u64) -> bool {
        // EDGE cut-counted: as above.
        self.count.load(Ordering::Acquire) == seen
    }

    /// The lowest position at which a cut began that such a reader has not seen, and what it has
    /// seen now. Waits for a cut that is being made.
    pub(crate) fn since(&self, seen: u64) -> (Option<Lsn>, u64) {
        let made = self.made();
        let unseen = made.iter().find(|(count, _)| *count > seen);
        (unseen.map(|(_, from)| *from), self.count.load(Ordering::Relaxed))
    }

    /// Keeps others from cutting, and from reading on where this is done.
    pub(crate) fn alone(&self) -> Cutting<'_> {
        Cutting { cuts: self, made: self.made() }
    }

    fn made(&self) -> MutexGuard<'_, Vec<(u64, Lsn)>> {
        self.made.lock().expect("nothing panics with the cuts")
    }
}

impl Cutting<'_> {
    /// A cut begins at `from`; `first` is the first position that is needed.
    pub(crate) fn begin(&mut self, from: Lsn, first: Lsn) {
        // EDGE cut-counted: the number is odd before the first block is written over.
        let count = self.cuts.count.fetch_add(1, Ordering::AcqRel);
        self.made.retain(|made| made.1 < from);
        let needless = self.made.partition_point(|made| made.1 < first).saturating_sub(1);
        self.made.drain(..needless);
        self.made.push((count + 2, from));
    }
}

impl Drop for Cutting<'_> {
    fn drop(&mut self) {
        let count = self.cuts.count.load(Ordering::Relaxed);
        // EDGE cut-counted: all has been written over by now.
        self.cuts.count.store(count.next_multiple_of(2), Ordering::Release);
    }
}

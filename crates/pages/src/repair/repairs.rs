//! What was wrong with pages on their device, and which of them still are.
//!
//! Promise: each fault that was met is counted once; a page that was rebuilt in memory is told to
//! whoever writes pages, until that one has taken it.
//! Never: repairs a page.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::stream::rsn::PageNumber;

/// What was wrong with a page on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// All zeros, although it was written.
    Zeroed,
    /// Its check does not match.
    Damaged,
    /// Whole, but another page.
    Misplaced,
    /// Whole, but older than what was written last.
    LostWrite,
    /// Whole, but it does not lead to what its records say.
    Astray,
    /// The device did not say what is there.
    Unreadable,
}

impl FaultKind {
    /// All of them, in order.
    pub const ALL: [FaultKind; 6] = [
        FaultKind::Zeroed,
        FaultKind::Damaged,
        FaultKind::Misplaced,
        FaultKind::LostWrite,
        FaultKind::Astray,
        FaultKind::Unreadable,
    ];
}

/// The faults of one page file. All calls may come from any thread.
#[derive(Debug, Default)]
pub struct Repairs {
    counts: [AtomicU64; FaultKind::ALL.len()],
    waiting: Mutex<BTreeSet<PageNumber>>,
}

impl Repairs {
    /// No faults.
    #[must_use]
    pub fn new() -> Repairs {
        Repairs::default()
    }

    /// Counts a fault of a page, which is to be written again.
    pub fn add(&self, page: PageNumber, kind: FaultKind) {
        self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        self.waiting().insert(page);
    }

    /// How many faults of a kind there were.
    #[must_use]
    pub fn count(&self, kind: FaultKind) -> u64 {
        self.counts[kind as usize].load(Ordering::Relaxed)
    }

    /// Pages that are to be written again, in order. They are told once; who fails to write one
    /// says so by [`Repairs::put_back`].
    #[must_use]
    pub fn take(&self) -> BTreeSet<PageNumber> {
        std::mem::take(&mut self.waiting())
    }

    /// These pages are still to be written.
    pub fn put_back(&self, pages: impl IntoIterator<Item = PageNumber>) {
        self.waiting().extend(pages);
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeSet<PageNumber>> {
        self.waiting.lock().expect("nothing panics with numbers")
    }
}

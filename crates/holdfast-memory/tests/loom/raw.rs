//! A plain value that several threads of a model touch.
//!
//! Promise: loom panics when two accesses to it are not ordered by the code under test.
//! Never: orders anything itself.

use loom::cell::UnsafeCell;

/// The value. It stands for ring bytes, or for what a lock protects.
pub(crate) struct Plain(UnsafeCell<u64>);

// SAFETY: loom checks at each access that no other one races with it, and panics before the value
// is touched if one does.
unsafe impl Sync for Plain {}

impl Plain {
    pub(crate) fn new(value: u64) -> Plain {
        Plain(UnsafeCell::new(value))
    }

    pub(crate) fn read(&self) -> u64 {
        // SAFETY: as for Sync; the pointer comes from a live cell.
        self.0.with(|value| unsafe { *value })
    }

    pub(crate) fn write(&self, new: u64) {
        // SAFETY: as for Sync; the pointer comes from a live cell.
        self.0.with_mut(|value| unsafe { *value = new });
    }
}

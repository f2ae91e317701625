//! Plain values that several threads of a model touch.
//!
//! Promise: loom panics when two accesses to one are not ordered by the code under test.
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

/// Words that a slot's owner and the server hand to each other.
#[derive(Debug)]
pub(crate) struct Words<const COUNT: usize>(UnsafeCell<[u64; COUNT]>);

// SAFETY: as for `Plain`.
unsafe impl<const COUNT: usize> Sync for Words<COUNT> {}

impl<const COUNT: usize> Words<COUNT> {
    pub(crate) fn new() -> Words<COUNT> {
        Words(UnsafeCell::new([0; COUNT]))
    }

    pub(crate) fn load(&self) -> [u64; COUNT] {
        // SAFETY: as for `Plain`.
        self.0.with(|values| unsafe { *values })
    }

    pub(crate) fn store(&self, new: [u64; COUNT]) {
        // SAFETY: as for `Plain`.
        self.0.with_mut(|values| unsafe { *values = new });
    }
}

//! Blocks in an area of durable memory.
//!
//! Promise: each method is one call of the area.
//! Never: decides anything.

use std::sync::atomic::Ordering;

use holdfast_memory::Area;

use crate::memory::Memory;
use crate::orderings::{MAP_NAME, MAP_SEE};

impl Memory for Area {
    #[inline]
    fn load(&self, at: u64) -> u64 {
        // EDGE cell-named: having seen the name, the cell is whole.
        self.word_at(at).load(MAP_SEE)
    }

    #[inline]
    fn store(&self, at: u64, value: u64) {
        // EDGE cell-named: the cell is whole before the map names it.
        self.word_at(at).store(value, MAP_NAME);
    }

    #[inline]
    fn copy_out(&self, at: u64, into: &mut [u8]) {
        Area::copy_out(self, at, into);
    }

    #[inline]
    fn copy_in(&self, at: u64, from: &[u8]) {
        Area::copy_in(self, at, from);
    }

    #[inline]
    fn persist(&self, at: u64, bytes: u64) {
        Area::persist(self, at, bytes);
    }

    fn set_counter(&self, counter: usize, value: u64) {
        self.counter(counter).store(value, Ordering::Relaxed);
    }

    #[inline]
    fn count(&self, counter: usize, change: i64) {
        self.counter(counter).fetch_add(change.cast_unsigned(), Ordering::Relaxed);
    }
}

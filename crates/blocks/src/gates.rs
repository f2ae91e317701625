//! What keeps writers of one block apart, and tells readers that a cell was given up.
//!
//! Promise: the map words of a gate change only while it is held; a reader that finds a gate's
//! count as it was before it read has read cells that were in nobody else's use meanwhile.
//! Never: makes a reader wait for a writer, but one that was overtaken again and again.
//!
//! A sequence lock, whose readers write nothing (H.-J. Boehm, "Can Seqlocks Get Along with
//! Programming Language Memory Models?", has the fences). The count is not in the region: it only
//! tells apart moments of one process.

use std::sync::atomic::Ordering;

use crate::orderings::{RECHECK_FENCED, SWAP_COUNT, SWAP_SEE};
use crate::sync::{AtomicU64, Mutex, MutexGuard, fence, lock, try_lock};

/// Blocks in a row that share a gate.
const BLOCKS: u64 = 8;

/// So many that two threads seldom meet, and that a write never needs one twice.
pub(crate) const GATES: usize = if cfg!(model) { 1 } else { 1024 };

/// A lock and a count, in a cache line of their own.
#[repr(align(64))]
#[derive(Debug)]
pub(crate) struct Gate {
    lock: Mutex<()>,
    swaps: AtomicU64,
}

/// All gates of a disk.
#[derive(Debug)]
pub(crate) struct Gates(Box<[Gate]>);

impl Gates {
    pub(crate) fn new() -> Gates {
        let gate = || Gate { lock: Mutex::new(()), swaps: AtomicU64::new(0) };
        Gates((0..GATES).map(|_| gate()).collect())
    }

    /// The gate of a block.
    #[inline]
    pub(crate) fn of(&self, block: u64) -> &Gate {
        &self.0[(block / BLOCKS) as usize % GATES]
    }

    /// Holds the gates of `count` blocks from `first` on. One thread at a time may hold several.
    pub(crate) fn hold(&self, first: u64, count: usize) -> Vec<MutexGuard<'_, ()>> {
        assert!(count < (GATES - 1) * BLOCKS as usize || GATES == 1, "no gate is taken twice");
        self.rows(first, count).map(Gate::hold).collect()
    }

    /// Holds the gates of blocks from `first` on, and before `end`, as far as nobody else does;
    /// returns where that ends. Who never waits may hold some beside others.
    pub(crate) fn try_hold(&self, first: u64, end: u64) -> (Vec<MutexGuard<'_, ()>>, u64) {
        let (mut held, mut next) = (Vec::new(), first);
        while next < end
            && let Some(gate) = self.of(next).try_hold()
        {
            held.push(gate);
            next = Gates::row(next, end).end;
        }
        (held, next)
    }

    /// Holds every gate. As for [`Gates::hold`], one thread at a time may.
    pub(crate) fn hold_all(&self) -> Vec<MutexGuard<'_, ()>> {
        self.0.iter().map(Gate::hold).collect()
    }

    /// Says that map words of `count` blocks from `first` on were swapped.
    pub(crate) fn count_swaps(&self, first: u64, count: usize) {
        self.rows(first, count).for_each(Gate::count_swap);
    }

    fn rows(&self, first: u64, count: usize) -> impl Iterator<Item = &Gate> {
        let rows = first / BLOCKS..(first + count as u64).div_ceil(BLOCKS);
        rows.map(|row| self.of(row * BLOCKS))
    }

    /// The blocks from `first` on, and before `end`, that share the gate of `first`.
    pub(crate) fn row(first: u64, end: u64) -> std::ops::Range<u64> {
        first..end.min((first / BLOCKS + 1) * BLOCKS)
    }
}

impl Gate {
    /// The right to change the map words of the gate.
    #[inline]
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        lock(&self.lock)
    }

    /// The same, if it is to be had without waiting.
    #[inline]
    pub(crate) fn try_hold(&self) -> Option<MutexGuard<'_, ()>> {
        try_lock(&self.lock)
    }

    /// How often map words were swapped so far.
    #[inline]
    pub(crate) fn swaps(&self) -> u64 {
        // EDGE swap-counted: a word that was swapped before the count is seen swapped.
        self.swaps.load(SWAP_SEE)
    }

    /// Says that map words were swapped, before the cells that they named are spare.
    #[inline]
    pub(crate) fn count_swap(&self) {
        // EDGE swap-counted: the words are swapped before they are counted.
        self.swaps.fetch_add(1, SWAP_COUNT);
    }

    /// Whether no map word was swapped since there were `seen`: what was copied is of one piece.
    #[inline]
    pub(crate) fn is_still(&self, seen: u64) -> bool {
        if RECHECK_FENCED {
            // EDGE cell-reused: who read a byte of the next user sees that the cell was given up.
            fence(Ordering::Acquire);
        }
        self.swaps.load(Ordering::Relaxed) == seen
    }
}

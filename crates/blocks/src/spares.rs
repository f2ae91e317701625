//! The cells that no block has.
//!
//! Promise: a cell is given out to one writer at a time, and never while a map word names it; who
//! waits for cells holds none, so there is always somebody who can go on.
//! Never: is written down. What the map does not name is spare, and is found so by an attach.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::orderings::REUSE_FENCED;
use crate::sync::{Condvar, Mutex, fence, lock};

/// All spare cells of a disk.
#[derive(Debug)]
pub(crate) struct Spares {
    pool: Mutex<Pool>,
    more: Condvar,
}

#[derive(Debug)]
struct Pool {
    /// Given back, the newest last: what was used lately is still in the processor's caches.
    returned: Vec<u32>,
    /// Found spare by the attach, and not given out since.
    found: Found,
    spare: usize,
    /// Who waits for more; a wake-up costs a system call.
    waiting: usize,
}

/// Cells that were not in use at some moment, each given out once, in order.
#[derive(Debug)]
struct Found {
    used: Cells,
    next: u32,
}

/// A set of cells.
#[derive(Debug)]
pub(crate) struct Cells {
    bits: Vec<u64>,
    count: u32,
}

/// Cells that one writer has. What it has left when this is dropped becomes spare.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    spares: &'a Spares,
    cells: Vec<Option<u32>>,
}

impl Cells {
    /// None of so many.
    pub(crate) fn none_of(count: u32) -> Cells {
        Cells { bits: vec![0; count.div_ceil(64) as usize], count }
    }

    /// Whether there is such a cell.
    pub(crate) fn knows(&self, cell: u32) -> bool {
        cell < self.count
    }

    /// Adds a cell; false if it was in already.
    pub(crate) fn insert(&mut self, cell: u32) -> bool {
        let (word, bit) = (&mut self.bits[cell as usize / 64], 1 << (cell % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn contains(&self, cell: u32) -> bool {
        self.bits[cell as usize / 64] >> (cell % 64) & 1 == 1
    }

    /// How many are in.
    pub(crate) fn len(&self) -> u32 {
        self.bits.iter().map(|word| word.count_ones()).sum()
    }
}

impl Iterator for Found {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.used.knows(self.next) {
            let cell = self.next;
            self.next += 1;
            if !self.used.contains(cell) {
                return Some(cell);
            }
        }
        None
    }
}

impl Spares {
    /// All cells that are not `used`.
    pub(crate) fn all_but(used: Cells) -> Spares {
        let spare = (used.count - used.len()) as usize;
        let found = Found { used, next: 0 };
        let pool = Pool { returned: Vec::new(), found, spare, waiting: 0 };
        Spares { pool: Mutex::new(pool), more: Condvar::new() }
    }

    /// So many cells, as soon as there are.
    pub(crate) fn take(&self, count: usize) -> Taken<'_> {
        let mut pool = lock(&self.pool);
        while pool.spare < count {
            pool.waiting += 1;
            pool = self.more.wait(pool).unwrap_or_else(PoisonError::into_inner);
            pool.waiting -= 1;
        }
        self.given(pool.take(count))
    }

    /// So many cells, if that leaves so many for others: who waits for a client while it has cells
    /// must not keep a writer waiting.
    pub(crate) fn take_and_leave(&self, count: usize, left: usize) -> Option<Taken<'_>> {
        let mut pool = lock(&self.pool);
        (pool.spare >= count + left).then(|| self.given(pool.take(count)))
    }

    fn given(&self, cells: Vec<Option<u32>>) -> Taken<'_> {
        if REUSE_FENCED {
            // EDGE cell-reused: the map had given the cell up before anything new is in it.
            fence(Ordering::Release);
        }
        Taken { spares: self, cells }
    }

    /// Makes cells spare that no map word names any more.
    pub(crate) fn give(&self, cells: impl Iterator<Item = u32>) {
        let mut pool = lock(&self.pool);
        let before = pool.returned.len();
        pool.returned.extend(cells);
        pool.spare += pool.returned.len() - before;
        let is_awaited = pool.waiting != 0;
        drop(pool);
        if is_awaited {
            self.more.notify_all();
        }
    }
}

impl Pool {
    /// The newest of those given back, in the order in which they came; then such as were found.
    fn take(&mut self, count: usize) -> Vec<Option<u32>> {
        self.spare -= count;
        let keep = self.returned.len().saturating_sub(count);
        let mut cells: Vec<_> = self.returned.drain(keep..).map(Some).collect();
        let missing = count - cells.len();
        cells.extend(self.found.by_ref().take(missing).map(Some));
        assert!(cells.len() == count, "as many cells are spare as were counted");
        cells
    }
}

impl Taken<'_> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// The cell at `index`, which was not handed over yet.
    #[inline]
    pub(crate) fn cell(&self, index: usize) -> u32 {
        self.cells[index].expect("a cell is handed over once")
    }

    /// How many of the `most` cells from `index` on lie one behind another.
    #[inline]
    pub(crate) fn in_a_row(&self, index: usize, most: usize) -> usize {
        let follows = |at: &usize| self.cell(*at) == self.cell(*at - 1) + 1;
        1 + (index + 1..index + most).take_while(follows).count()
    }

    /// Says that the map names the cell at `index`, and does not name `old` any more.
    #[inline]
    pub(crate) fn hand_over(&mut self, index: usize, old: Option<u32>) {
        self.cells[index] = old;
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.spares.give(self.cells.drain(..).flatten());
    }
}

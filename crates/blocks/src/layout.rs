//! Where things lie in a disk's area, and the header that says so.
//!
//! Promise: a header that decodes was written for a disk of this version whose parts lie inside the
//! area, one after another.
//! Never: reads a block.
//!
//! Byte table: FORMAT.md, "Disk".

use crate::header::{self, BLOCK_BYTES, HeaderFault};
use crate::intent::{ENTRIES_MAX, INTENT_AT, INTENT_BYTES};
use crate::map::CELLS_MAX;
use crate::memory::Memory;

/// The format version this program writes and knows.
pub(crate) const VERSION: u32 = 1;

/// The most bytes of one write that are there wholly or not at all.
pub(crate) const WRITE_BYTES_MAX: usize = 1 << 20;

/// The most blocks that such a write touches, if it does not begin with one.
pub(crate) const WRITE_BLOCKS_MAX: usize = WRITE_BYTES_MAX / BLOCK_BYTES + 1;

/// Writers for whom a disk has cells beyond its blocks, at once and of as much as can be.
const WRITERS: u64 = 3;

/// Cells of a disk beyond its blocks.
pub(crate) const SPARE_CELLS: u64 = WRITERS * WRITE_BLOCKS_MAX as u64;

/// The most blocks that a disk can have.
pub(crate) const BLOCKS_MAX: u64 = CELLS_MAX - SPARE_CELLS;

const _: () = assert!(WRITE_BLOCKS_MAX <= ENTRIES_MAX); // an intent has all of a write

/// Where the map begins.
const MAP_AT: u64 = INTENT_AT + INTENT_BYTES;

/// How a disk is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) blocks: u64,
    pub(crate) cells: u32,
}

impl Layout {
    /// A disk of so many blocks, at most [`BLOCKS_MAX`].
    pub(crate) fn of(blocks: u64) -> Layout {
        assert!(blocks <= BLOCKS_MAX, "cells are numbered by 32 bits");
        Layout { blocks, cells: (blocks + SPARE_CELLS) as u32 }
    }

    /// Bytes of the disk.
    #[inline]
    pub(crate) fn size_bytes(&self) -> u64 {
        self.blocks * BLOCK_BYTES as u64
    }

    /// Of the cells beyond the blocks, those of one writer.
    pub(crate) fn cells_of_a_writer(&self) -> usize {
        ((u64::from(self.cells) - self.blocks) / WRITERS) as usize
    }

    /// Bytes of the area.
    pub(crate) fn area_bytes(&self) -> u64 {
        self.cells_at() + u64::from(self.cells) * BLOCK_BYTES as u64
    }

    /// Where the map word of a block lies.
    #[inline]
    pub(crate) fn word_at(&self, block: u64) -> u64 {
        MAP_AT + 8 * block
    }

    /// Where a cell lies.
    #[inline]
    pub(crate) fn cell_at(&self, cell: u32) -> u64 {
        self.cells_at() + u64::from(cell) * BLOCK_BYTES as u64
    }

    #[inline]
    fn cells_at(&self) -> u64 {
        (MAP_AT + 8 * self.blocks).next_multiple_of(BLOCK_BYTES as u64)
    }

    /// Writes a header, and a map in which no block has a cell.
    pub(crate) fn format<M: Memory>(&self, memory: &M, seed: u32) {
        for block in 0..self.blocks {
            memory.store(self.word_at(block), 0);
        }
        memory.store(INTENT_AT, 0);
        memory.persist(0, self.cells_at());
        header::write(memory, seed, VERSION, [self.blocks, u64::from(self.cells)]);
    }

    /// Reads the header of a disk in `area_bytes` bytes.
    pub(crate) fn found<M: Memory>(
        memory: &M,
        seed: u32,
        area_bytes: u64,
    ) -> Result<Layout, HeaderFault> {
        let [blocks, cells] = header::read(memory, seed, VERSION)?;
        // Who writes as much as can be needs so many spare cells, or would wait for ever.
        let least = blocks.checked_add(WRITE_BLOCKS_MAX as u64);
        if least.is_none_or(|least| cells < least) || cells > CELLS_MAX {
            return Err(HeaderFault::Damaged);
        }
        let layout = Layout { blocks, cells: cells as u32 };
        if layout.area_bytes() == area_bytes { Ok(layout) } else { Err(HeaderFault::Damaged) }
    }
}

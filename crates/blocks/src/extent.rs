//! Where a disk has room and where it has none, for whoever copies it.
//!
//! Promise: what is called a hole reads as zeros.
//! Never: changes anything, or waits for anybody.

use holdfast_io::{BlocksError, Extent};

use crate::disk::Disk;
use crate::header::BLOCK_BYTES;
use crate::memory::Memory;

/// Blocks that are looked at for one extent: some hundred microseconds.
const EXTENT_BLOCKS_MAX: u64 = 1 << 16;

impl<M: Memory> Disk<M> {
    /// Whether the block of a byte has a cell, and up to where those that follow are alike.
    pub(crate) fn extent_at(&self, offset: u64) -> Result<Extent, BlocksError> {
        self.check_range(offset, 1)?;
        let block_bytes = BLOCK_BYTES as u64;
        let (first, blocks) = (offset / block_bytes, self.size_bytes().div_ceil(block_bytes));
        let is_hole = self.cell_of(first)?.is_none();
        let mut end = first + 1;
        while end < blocks.min(first + EXTENT_BLOCKS_MAX) && self.cell_of(end)?.is_none() == is_hole
        {
            end += 1;
        }
        Ok(Extent { end: (end * block_bytes).min(self.size_bytes()), is_hole })
    }
}

//! A range of a disk's bytes, block by block.
//!
//! Promise: the parts follow each other, touch one block each, and are the range.
//! Never: reads or writes.

use crate::header::BLOCK_BYTES;

/// What a range touches of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) block: u64,
    /// Bytes of the block before it.
    pub(crate) skip: usize,
    pub(crate) bytes: usize,
}

impl Part {
    /// Whether it is all of the block.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.bytes == BLOCK_BYTES
    }

    /// Where it begins, in bytes of the disk.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.block * BLOCK_BYTES as u64 + self.skip as u64
    }

    /// Where it lies in its block.
    #[inline]
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.skip..self.skip + self.bytes
    }
}

/// The parts of `bytes` bytes from `offset` on.
#[inline]
pub(crate) fn parts(offset: u64, bytes: usize) -> impl Iterator<Item = Part> {
    let block_bytes = BLOCK_BYTES as u64;
    let (mut at, end) = (offset, offset + bytes as u64);
    std::iter::from_fn(move || {
        let (block, skip) = (at / block_bytes, at % block_bytes);
        let bytes = (end - at).min(block_bytes - skip);
        at += bytes;
        (bytes != 0).then_some(Part { block, skip: skip as usize, bytes: bytes as usize })
    })
}

/// How many blocks such a range touches.
#[inline]
pub(crate) fn blocks_of(offset: u64, bytes: usize) -> usize {
    let (first, end) = (offset / BLOCK_BYTES as u64, offset + bytes as u64);
    (end.div_ceil(BLOCK_BYTES as u64) - first) as usize
}

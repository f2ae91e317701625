//! Memory that a direct transfer accepts.
//!
//! Promise: the bytes start at a multiple of a block.
//! Never: grows.

use holdfast_core::frame::BLOCK_BYTES;

const BLOCK: usize = BLOCK_BYTES as usize;

/// Zeroed, block-aligned bytes on the heap.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// `len` zeros.
    pub(crate) fn zeroed(len: usize) -> Buffer {
        let bytes = vec![0u8; len + BLOCK];
        let start = bytes.as_ptr().align_offset(BLOCK);
        assert!(start < BLOCK);
        Buffer { bytes, start, len }
    }

    /// The bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    /// The bytes, to be changed.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

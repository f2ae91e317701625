//! Memory for what is read through a cipher or a compression.
//!
//! Promise: its bytes begin at a multiple of 8, as records do; it is kept from set to set.
//! Never: shrinks.

/// What records begin at a multiple of.
const ALIGN: usize = 8;

/// Bytes on the heap, aligned.
#[derive(Default)]
pub(crate) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// `len` bytes to be written, whatever they hold.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        if self.memory.len() < len + ALIGN {
            self.memory = vec![0; len + ALIGN];
            self.start = self.memory.as_ptr().align_offset(ALIGN);
            assert!(self.start < ALIGN);
        }
        self.len = len;
        &mut self.memory[self.start..self.start + len]
    }

    /// What was written.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

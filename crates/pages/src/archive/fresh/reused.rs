//! Memory of chunks that are gone, for those that come.
//!
//! Promise: what is taken is empty and has room for a whole chunk; what is kept is no more than a
//! window of the archive's has by default.
//! Never: keeps what has another size.
//!
//! New memory costs a fault for each page of it, which is more than to copy records there.

use std::sync::{Mutex, MutexGuard};

/// What is pushed in small pieces is put together up to this length, so that a clone that is
/// outlived by its original costs little.
pub(super) const CHUNK_BYTES_MAX: usize = 256 << 10;

/// How many chunks' memory is kept: 2 MiB.
const REUSED_MAX: usize = 8;

/// Memory for whole chunks. All calls may come from any thread.
#[derive(Debug, Default)]
pub(super) struct Reused(Mutex<Vec<Vec<u8>>>);

impl Reused {
    /// Memory for a chunk.
    pub(super) fn take(&self) -> Vec<u8> {
        let kept = self.lock().pop();
        kept.unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES_MAX))
    }

    /// Keeps the memory of a chunk that is gone, or frees it.
    pub(super) fn keep(&self, mut memory: Vec<u8>) {
        let mut kept = self.lock();
        if memory.capacity() == CHUNK_BYTES_MAX && kept.len() < REUSED_MAX {
            memory.clear();
            kept.push(memory);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().expect("nothing panics with memory")
    }
}

#[cfg(test)]
mod tests;

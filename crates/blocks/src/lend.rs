//! A disk's bytes where they lie, for who sends them and so cannot take back what it has read.
//!
//! Promise: what is lent does not change while it is, because its gates are held; who finds a gate
//! held is lent nothing behind it, so a lender never waits, and may hold many.
//! Never: writes.

use holdfast_io::BlocksError;

use crate::disk::Disk;
use crate::header::BLOCK_BYTES;
use crate::memory::Memory;
use crate::orderings::LEND_HELD;
use crate::parts::{blocks_of, parts};

/// Most bytes that are lent at a time: a writer of one of them waits while all are copied.
const LENT_BYTES_MAX: usize = 1 << 20;

/// Where some of a disk's bytes lie, one behind another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Their first in the memory; `None`: they are zeros, of one block.
    pub(crate) at: Option<u64>,
    pub(crate) bytes: usize,
}

impl Place {
    /// Whether what lies at `at` follows.
    fn is_before(&self, at: Option<u64>) -> bool {
        let end = self.at.map(|at| at + self.bytes as u64);
        end.is_some() && end == at
    }
}

impl<M: Memory> Disk<M> {
    /// Calls `with` with the places of these bytes, as many of the first as are at hand, which
    /// nobody changes until it returns: it must not wait, because writers wait for it. `None`: none
    /// is at hand, because a writer is there.
    pub(crate) fn lend<R>(
        &self,
        offset: u64,
        bytes: usize,
        with: impl FnOnce(&[Place]) -> R,
    ) -> Result<Option<R>, BlocksError> {
        self.check_range(offset, bytes as u64)?;
        let block_bytes = BLOCK_BYTES as u64;
        let wanted = offset + bytes.min(LENT_BYTES_MAX) as u64;
        let (held, end) = self.gates.try_hold(offset / block_bytes, wanted.div_ceil(block_bytes));
        if !LEND_HELD {
            drop(held);
        }
        let lent_bytes = wanted.min(end * block_bytes).saturating_sub(offset);
        let places = self.places(offset, lent_bytes as usize)?;
        Ok((lent_bytes > 0).then(|| with(&places)))
    }

    /// Where these bytes lie; the caller holds their gates.
    fn places(&self, offset: u64, bytes: usize) -> Result<Vec<Place>, BlocksError> {
        let mut places: Vec<Place> = Vec::with_capacity(blocks_of(offset, bytes));
        for part in parts(offset, bytes) {
            let cell = self.cell_of(part.block)?;
            let at = cell.map(|cell| self.layout.cell_at(cell) + part.skip as u64);
            match places.last_mut() {
                Some(last) if last.is_before(at) => last.bytes += part.bytes,
                _ => places.push(Place { at, bytes: part.bytes }),
            }
        }
        Ok(places)
    }
}

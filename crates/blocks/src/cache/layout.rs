//! Where things lie in a cache's area, the header that says so, and the last sync.
//!
//! Promise: a header that decodes was written for a cache of this version that fills its area.
//! Never: reads a cell.
//!
//! Byte table: FORMAT.md, "Cache".

use std::ops::Range;

use holdfast_io::checksum::crc32c;

use crate::header::{self, BLOCK_BYTES, HeaderFault};
use crate::memory::Memory;

/// The format version this program writes and knows.
pub(crate) const VERSION: u32 = 1;

/// Cells of a bucket.
pub(crate) const WAYS: u32 = 16;

/// Where the word about syncs lies.
const SYNCED_AT: u64 = 1024;

/// Where the entries begin.
const ENTRIES_AT: u64 = 4096;

const ENTRY_BYTES: u64 = 16;

/// The most buckets that there can be: cells are numbered by 32 bits.
pub(crate) const BUCKETS_MAX: u64 = (u32::MAX / WAYS) as u64;

/// How a cache is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheLayout {
    pub(crate) buckets: u32,
}

impl CacheLayout {
    /// All cells.
    pub(crate) fn cells(&self) -> u32 {
        self.buckets * WAYS
    }

    /// Bytes of the area.
    pub(crate) fn area_bytes(&self) -> u64 {
        self.cell_at(self.cells())
    }

    /// The bucket that a block belongs to.
    #[inline]
    pub(crate) fn bucket_of(&self, block: u64) -> u32 {
        // Neighbours go to buckets far from each other, as does what lies at any one distance.
        let mixed = block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        ((mixed * u64::from(self.buckets)) >> 32) as u32
    }

    /// The cells of a bucket.
    #[inline]
    pub(crate) fn cells_of(&self, bucket: u32) -> Range<u32> {
        bucket * WAYS..(bucket + 1) * WAYS
    }

    /// Where the entry of a cell lies.
    #[inline]
    pub(crate) fn entry_at(&self, cell: u32) -> u64 {
        ENTRIES_AT + ENTRY_BYTES * u64::from(cell)
    }

    /// Where a cell lies.
    #[inline]
    pub(crate) fn cell_at(&self, cell: u32) -> u64 {
        let block_bytes = BLOCK_BYTES as u64;
        let first = self.entry_at(self.cells()).next_multiple_of(block_bytes);
        first + u64::from(cell) * block_bytes
    }

    /// Writes a header, and entries that hold nothing.
    pub(crate) fn format<M: Memory>(&self, memory: &M, seed: u32) {
        for at in (0..self.entry_at(self.cells())).step_by(8) {
            memory.store(at, 0);
        }
        memory.persist(0, self.entry_at(self.cells()));
        header::write(memory, seed, VERSION, [u64::from(self.buckets), u64::from(WAYS)]);
    }

    /// Reads the header of a cache in `area_bytes` bytes.
    pub(crate) fn found<M: Memory>(
        memory: &M,
        seed: u32,
        area_bytes: u64,
    ) -> Result<CacheLayout, HeaderFault> {
        let [buckets, ways] = header::read(memory, seed, VERSION)?;
        if buckets == 0 || buckets > BUCKETS_MAX || ways != u64::from(WAYS) {
            return Err(HeaderFault::Damaged);
        }
        let layout = CacheLayout { buckets: buckets as u32 };
        if layout.area_bytes() == area_bytes { Ok(layout) } else { Err(HeaderFault::Damaged) }
    }
}

/// The newest epoch that a sync of the home covered; none if nobody knows.
pub(super) fn synced<M: Memory>(memory: &M, seed: u32) -> Option<u32> {
    let word = memory.load(SYNCED_AT);
    (word == synced_word(word as u32, seed)).then_some(word as u32)
}

/// Says that a sync covered an epoch.
pub(super) fn note_synced<M: Memory>(memory: &M, seed: u32, epoch: u32) {
    memory.store(SYNCED_AT, synced_word(epoch, seed));
    memory.persist(SYNCED_AT, 8);
}

fn synced_word(epoch: u32, seed: u32) -> u64 {
    u64::from(epoch) | u64::from(crc32c(seed, &epoch.to_le_bytes())) << 32
}

//! The words that say which cell has which block.
//!
//! Promise: a word that decodes was encoded for this block of this disk; any other is damage.
//! Never: knows where the words lie.
//!
//! Zero: the block has no cell and reads as zeros. Otherwise the low half is the cell's number and
//! one, and the high half a check over identity, block and low half.

use holdfast_io::checksum;

/// The most cells that there can be.
pub(crate) const CELLS_MAX: u64 = u32::MAX as u64 - 1;

/// What a map word says, for one disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapWords {
    /// Makes another disk's words none of this one.
    seed: u32,
    checksum: fn(u32, &[u8]) -> u32,
}

/// A map word that nobody wrote for its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DamagedWord;

impl MapWords {
    /// The words of the disk whose checks begin with `seed`.
    pub(crate) fn of(seed: u32) -> MapWords {
        MapWords { seed, checksum: checksum::chosen() }
    }

    /// The word of a block that has this cell.
    #[inline]
    pub(crate) fn encode(self, block: u64, cell: Option<u32>) -> u64 {
        match cell {
            None => 0,
            Some(cell) => self.word(block, cell + 1),
        }
    }

    /// The cell that the block's word names.
    #[inline]
    pub(crate) fn decode(self, block: u64, word: u64) -> Result<Option<u32>, DamagedWord> {
        let low = word as u32;
        match low.checked_sub(1) {
            None if word == 0 => Ok(None),
            Some(cell) if word == self.word(block, low) => Ok(Some(cell)),
            _ => Err(DamagedWord),
        }
    }

    #[inline]
    fn word(self, block: u64, low: u32) -> u64 {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&block.to_le_bytes());
        bytes[8..].copy_from_slice(&low.to_le_bytes());
        u64::from(low) | u64::from((self.checksum)(self.seed, &bytes)) << 32
    }
}

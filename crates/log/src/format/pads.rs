//! The checks of pads, which hold nothing but zeros.
//!
//! Promise: the same as taking the check over the zeros, which takes as long as that of a record
//! thirty times as long as most.
//! Never: knows a pad that is longer than what seals a log to a block.

use holdfast_core::frame::{BLOCK_BYTES, FRAME_ALIGN, Sealer};

const UNIT: usize = FRAME_ALIGN as usize;

/// The checks of zeros: none, one unit, two, and so on to the longest seal.
pub(crate) struct PadChecks(Box<[u32]>);

impl PadChecks {
    pub(crate) fn of(sealer: &Sealer) -> PadChecks {
        let next = |check: &u32| Some(sealer.more(*check, &[0; UNIT]));
        let checks = std::iter::successors(Some(sealer.payload_seed()), next);
        PadChecks(checks.take(2 * BLOCK_BYTES as usize / UNIT).collect())
    }

    /// The check of so many zeros, a multiple of 8; None if they are too many.
    #[inline]
    pub(crate) fn get(&self, bytes: usize) -> Option<u32> {
        self.0.get(bytes / UNIT).copied().filter(|_| bytes.is_multiple_of(UNIT))
    }
}

#[cfg(test)]
mod tests;

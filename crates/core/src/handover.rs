//! What a process that died may have left in a region.
//!
//! Promise: marks that pass can be worked with; every frame from `released` to `tail` is walked and
//! the first that is not whole is named.
//! Never: believes a mark because it is in our own memory.

use crate::Lsn;
use crate::frame::{BLOCK_BYTES, FRAME_ALIGN, FrameHeader};
use crate::ring::Geometry;

/// Why marks cannot be those of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarksFault {
    /// A mark is not at the start of a frame or block.
    Alignment,
    /// Not `released <= durable <= tail`.
    Order,
    /// More between `released` and `tail` than the ring holds.
    Capacity,
}

/// Checks the three marks against each other and the ring.
///
/// # Errors
/// The first rule that is broken.
pub const fn check_marks(
    geometry: &Geometry,
    released: Lsn,
    durable: Lsn,
    tail: Lsn,
) -> Result<(), MarksFault> {
    let frames = released.is_aligned(FRAME_ALIGN) && tail.is_aligned(FRAME_ALIGN);
    if !frames || !durable.is_aligned(BLOCK_BYTES) {
        return Err(MarksFault::Alignment);
    }
    if released.0 > durable.0 || durable.0 > tail.0 {
        return Err(MarksFault::Order);
    }
    if tail.0 - released.0 > geometry.ring_bytes() {
        return Err(MarksFault::Capacity);
    }
    Ok(())
}

/// A walk over frames that must all be there: those between two marks of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    geometry: Geometry,
    at: Lsn,
    to: Lsn,
    generation: u32,
}

impl Walk {
    /// From one frame boundary to another.
    #[must_use]
    pub const fn new(geometry: Geometry, from: Lsn, to: Lsn) -> Walk {
        Walk { geometry, at: from, to, generation: 0 }
    }

    /// Where the next frame must be; `None` at the end.
    #[must_use]
    pub const fn at(&self) -> Option<Lsn> {
        if self.at.0 < self.to.0 { Some(self.at) } else { None }
    }

    /// Whether a header found at [`Self::at`] can be the frame there: its payload may be read.
    #[must_use]
    pub fn fits(&self, header: &FrameHeader) -> bool {
        header.lsn == self.at
            && header.generation >= self.generation
            && self.geometry.holds(header.lsn, header.payload_bytes)
            && header.end() <= self.to
    }

    /// Steps over a frame that fits and whose payload has been checked.
    pub fn step(&mut self, header: &FrameHeader) {
        assert!(self.fits(header));
        self.at = header.end();
        self.generation = header.generation;
    }
}

#[cfg(test)]
mod tests;

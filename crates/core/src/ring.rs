//! Geometry and admission: where the next frame goes.
//!
//! The log is cut into **spans**: stretches of `min(segment, 8 MiB)` bytes. No frame crosses a
//! span, so none crosses a segment or the end of the ring either, and one drain never needs more
//! than one span: one contiguous write to one file.
//!
//! Promise: a full ring can always be emptied, with nothing but what is kept free for it. Three
//! rules make it so, whatever was appended, and whoever died:
//! 1. whatever ends inside a block leaves room for the seal that ends the block
//!    ([`Geometry::can_drain`]), so everything that is stable can become durable;
//! 2. a mark of the reader takes less than it gives back, or leaves plenty of the ring free. One
//!    that would do neither is refused a place, and is said without one: the log has another place
//!    for a position, which takes no room in the ring;
//! 3. so every window that the reader applies leaves more room than there was, and a ring holds a
//!    bounded number of them.
//!
//! Never: looks at the bytes.

use crate::Lsn;
use crate::frame::{BLOCK_BYTES, HEADER_BYTES, MARK_PAYLOAD_BYTES, frame_end};

/// The largest span.
pub const SPAN_BYTES_MAX: u64 = 8 << 20;
/// The smallest segment.
pub const SPAN_BYTES_MIN: u64 = 8 * BLOCK_BYTES;
/// Room that frames of data leave in the ring for marks and seals.
pub const RESERVE_BYTES: u64 = 6 * BLOCK_BYTES;
/// What a mark of the reader may take with its seal: the rest of a block, and a block.
const READER_BYTES: u64 = 2 * BLOCK_BYTES;

const _: () = assert!(SPAN_BYTES_MIN >= BLOCK_BYTES + READER_BYTES); // half a ring is enough
// Two spans hold a largest frame, the pad in front of it (less than the frame), what aligning both
// costs, and the reserve.
const _: () = assert!(SPAN_BYTES_MIN > RESERVE_BYTES + 4 * HEADER_BYTES);
const _: () = assert!(HEADER_BYTES + (MARK_PAYLOAD_BYTES as u64) < BLOCK_BYTES);

/// The fixed sizes of a log in a ring, all powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    ring_bytes: u64,
    segment_bytes: u64,
}

/// The three marks of a log, and the bound on what is stable but not durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// The reader is done below this.
    pub released: Lsn,
    /// On the device below this.
    pub durable: Lsn,
    /// Published below this.
    pub tail: Lsn,
    /// Most bytes from `durable` to `tail`, unless nothing is dirty.
    pub dirty_bytes_max: u64,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// A pad fills from the tail to here first, if this is not the tail.
    pub lsn: Lsn,
    /// Where the frame after it starts.
    pub end: Lsn,
}

/// Why a frame has no place now, or ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No span is large enough.
    TooLarge,
    /// The ring has to be released first.
    Full,
    /// The device has to catch up first.
    OverBound,
}

impl Geometry {
    /// Sizes that fit together: powers of two, and two segments or more in the ring. With an
    /// unbounded ring (a scan of segments alone), give `1 << 63`.
    #[must_use]
    pub const fn new(ring_bytes: u64, segment_bytes: u64) -> Option<Geometry> {
        let powers = ring_bytes.is_power_of_two() && segment_bytes.is_power_of_two();
        if !powers || segment_bytes < SPAN_BYTES_MIN || ring_bytes / 2 < segment_bytes {
            return None;
        }
        Some(Geometry { ring_bytes, segment_bytes })
    }

    /// Bytes in the ring.
    #[must_use]
    pub const fn ring_bytes(&self) -> u64 {
        self.ring_bytes
    }

    /// Bytes of frames in one segment.
    #[must_use]
    #[inline]
    pub const fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Bytes that no frame crosses a multiple of.
    #[must_use]
    #[inline]
    pub const fn span_bytes(&self) -> u64 {
        if self.segment_bytes < SPAN_BYTES_MAX { self.segment_bytes } else { SPAN_BYTES_MAX }
    }

    /// Where the span that holds the byte at `lsn` ends.
    #[must_use]
    #[inline]
    pub const fn span_end(&self, lsn: Lsn) -> Lsn {
        lsn.align_down(self.span_bytes()).advance(self.span_bytes())
    }

    /// The number of the segment that holds the byte at `lsn`.
    #[must_use]
    #[inline]
    pub const fn segment_of(&self, lsn: Lsn) -> u64 {
        lsn.get() >> self.segment_bytes.trailing_zeros()
    }

    /// The first position of a segment.
    #[must_use]
    pub const fn segment_start(&self, number: u64) -> Lsn {
        Lsn(number << self.segment_bytes.trailing_zeros())
    }

    /// The longest payload a frame can have: with its header, half a span. So a frame and the pad
    /// in front of it always fit into an empty ring.
    #[must_use]
    pub const fn payload_bytes_max(&self) -> u64 {
        self.span_bytes() / 2 - HEADER_BYTES
    }

    /// Whether a frame at `lsn` with this payload keeps to its span.
    #[must_use]
    #[inline]
    pub const fn holds(&self, lsn: Lsn, payload_bytes: u32) -> bool {
        let end = frame_end(lsn.align_down(FRAME_UNIT), payload_bytes);
        lsn.is_aligned(FRAME_UNIT) && end.0 <= self.span_end(lsn).0
    }

    /// Where a frame of data goes, or why it has to wait.
    ///
    /// # Errors
    /// See [`Refusal`].
    // Called, it hands its outcome over in memory, and its caller waits to load that.
    #[inline(always)]
    pub const fn place(&self, at: &Occupancy, payload_bytes: u64) -> Result<Place, Refusal> {
        let place = match self.next(at.tail, payload_bytes) {
            Ok(place) => place,
            Err(refusal) => return Err(refusal),
        };
        if !self.fits(at, place.end.advance(RESERVE_BYTES)) {
            return Err(Refusal::Full);
        }
        let dirty_bytes = place.end.since(at.durable);
        if dirty_bytes > at.dirty_bytes_max && at.tail.0 != at.durable.0 {
            return Err(Refusal::OverBound);
        }
        Ok(place)
    }

    /// Where a mark of the reader goes that lets go of `gives_bytes` of the ring: as a frame of
    /// data, but into the reserve and past the bound, because marks are what makes room. Leaves
    /// room for its seal.
    ///
    /// # Errors
    /// [`Refusal::Full`] if it would take, with its seal, as much as it gives while not much of the
    /// ring is free, or if even the reserve is used up: it is to be said elsewhere.
    pub const fn place_mark(&self, at: &Occupancy, gives_bytes: u64) -> Result<Place, Refusal> {
        let place = match self.place_in_reserve(at, BLOCK_BYTES) {
            Ok(place) => place,
            Err(refusal) => return Err(refusal),
        };
        let takes_bytes = place.end.advance(1).align_up(BLOCK_BYTES).since(at.tail);
        if gives_bytes > takes_bytes || self.fits(at, place.end.advance(self.plenty_bytes())) {
            return Ok(place);
        }
        Err(Refusal::Full)
    }

    /// Whether everything that is published can become durable: the first of the rules above.
    #[must_use]
    pub const fn can_drain(&self, at: &Occupancy) -> bool {
        self.fits(at, at.tail.align_up(BLOCK_BYTES))
    }

    /// Where a mark goes that is made for its watermark: only while plenty of the ring is free, so
    /// that a log that is opened over and over, or idles, never fills a ring with marks alone.
    ///
    /// # Errors
    /// [`Refusal::Full`]: the log does without.
    pub const fn place_watermark(&self, at: &Occupancy) -> Result<Place, Refusal> {
        self.place_in_reserve(at, self.plenty_bytes())
    }

    /// So much is free that nobody need be careful: half of the ring, and in any case what the
    /// largest frame may take, the pad in front of it and the reserve included.
    const fn plenty_bytes(&self) -> u64 {
        let largest_bytes = self.span_bytes() + RESERVE_BYTES + READER_BYTES;
        if self.ring_bytes / 2 > largest_bytes { self.ring_bytes / 2 } else { largest_bytes }
    }

    /// Where the pad ends that seals the tail to a block, so that a drain can end there; `None` if
    /// a drain can end as it is: at the end of a span (the next span proves it), or at the last
    /// seal, `sealed`. A seal that a dead process left is only repeated where there is room for it.
    #[must_use]
    pub const fn seal(&self, at: &Occupancy, sealed: Lsn) -> Option<Lsn> {
        let nothing_new = at.tail.0 == at.durable.0 || at.tail.0 == sealed.0;
        if nothing_new || at.tail.0 >= self.span_end(at.durable).0 {
            return None;
        }
        let end = at.tail.advance(1).align_up(BLOCK_BYTES);
        if at.tail.is_aligned(BLOCK_BYTES) && !self.fits(at, end.advance(READER_BYTES)) {
            return None;
        }
        Some(end)
    }

    /// Whether the ring can hold everything up to `end`.
    #[inline]
    const fn fits(&self, at: &Occupancy, end: Lsn) -> bool {
        end.0 <= at.released.0 + self.ring_bytes
    }

    const fn place_in_reserve(&self, at: &Occupancy, left_bytes: u64) -> Result<Place, Refusal> {
        let place = match self.next(at.tail, MARK_PAYLOAD_BYTES as u64) {
            Ok(place) => place,
            Err(refusal) => return Err(refusal),
        };
        if !self.fits(at, place.end.advance(left_bytes)) {
            return Err(Refusal::Full);
        }
        Ok(place)
    }

    /// The next place for a payload, behind a pad to the span's end where the rest is too small.
    #[inline]
    const fn next(&self, tail: Lsn, payload_bytes: u64) -> Result<Place, Refusal> {
        if payload_bytes > self.payload_bytes_max() {
            return Err(Refusal::TooLarge);
        }
        let payload_bytes = payload_bytes as u32;
        let here = frame_end(tail, payload_bytes);
        let span_end = self.span_end(tail);
        if here.0 <= span_end.0 {
            return Ok(Place { lsn: tail, end: here });
        }
        Ok(Place { lsn: span_end, end: frame_end(span_end, payload_bytes) })
    }
}

const FRAME_UNIT: u64 = crate::frame::FRAME_ALIGN;
const _: () = assert!(SPAN_BYTES_MAX < u32::MAX as u64); // a payload length fits its field

#[cfg(test)]
mod tests;

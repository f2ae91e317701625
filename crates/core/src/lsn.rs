//! Positions in a log.
//!
//! Promise: a position is an absolute count of bytes since the log began, never reused, never
//! wrapped; where it falls in a ring or a segment is a mask away.
//! Never: knows how large anything is.

use core::fmt;

/// A byte position in a log (a log sequence number). Frames start at multiples of 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The beginning of every log.
    pub const ZERO: Lsn = Lsn(0);

    /// The position as a number of bytes.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position `bytes` further on. A log never reaches 2^64 bytes; overflow is our mistake.
    #[must_use]
    #[inline]
    pub const fn advance(self, bytes: u64) -> Lsn {
        Lsn(self.0.checked_add(bytes).expect("a log is shorter than 2^64 bytes"))
    }

    /// The first multiple of `unit_bytes` (a power of two) at or above this position.
    #[must_use]
    #[inline]
    pub const fn align_up(self, unit_bytes: u64) -> Lsn {
        assert!(unit_bytes.is_power_of_two());
        Lsn(self.advance(unit_bytes - 1).0 & !(unit_bytes - 1))
    }

    /// The last multiple of `unit_bytes` (a power of two) at or below this position.
    #[must_use]
    #[inline]
    pub const fn align_down(self, unit_bytes: u64) -> Lsn {
        assert!(unit_bytes.is_power_of_two());
        Lsn(self.0 & !(unit_bytes - 1))
    }

    /// Whether this is a multiple of `unit_bytes` (a power of two).
    #[must_use]
    #[inline]
    pub const fn is_aligned(self, unit_bytes: u64) -> bool {
        self.offset_in(unit_bytes) == 0
    }

    /// How far this position lies into its unit of `unit_bytes` (a power of two).
    #[must_use]
    #[inline]
    pub const fn offset_in(self, unit_bytes: u64) -> u64 {
        assert!(unit_bytes.is_power_of_two());
        self.0 & (unit_bytes - 1)
    }

    /// Bytes from `earlier` to this position; `earlier` must not lie above it.
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Lsn) -> u64 {
        assert!(earlier.0 <= self.0);
        self.0 - earlier.0
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

//! Where a record stands, which page it is about, and which transaction made it.
//!
//! Promise: three numbers that cannot be taken for one another, nor for a position in the log.
//! Never: says what lies there.

use std::fmt;

/// The place of a record in the stream of all records of a store, in bytes; never reused. The log
/// adds heads and pads of its own, so its positions ([`holdfast_log::Lsn`]) run faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rsn(pub u64);

impl Rsn {
    /// No record: what a page has that none was applied to.
    pub const NONE: Rsn = Rsn(0);
    /// The first record of every store.
    pub const FIRST: Rsn = Rsn(8);

    /// The place as a number of bytes.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The place `bytes` further on. A stream never reaches 2^64 bytes; overflow is our mistake.
    #[must_use]
    #[inline]
    pub const fn advance(self, bytes: u64) -> Rsn {
        Rsn(self.0.checked_add(bytes).expect("a stream is shorter than 2^64 bytes"))
    }

    /// Bytes from `earlier` to this place; `earlier` must not lie above it. Only for places that
    /// come from one source: see [`Rsn::checked_since`].
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Rsn) -> u64 {
        self.checked_since(earlier).expect("places of one source are in order")
    }

    /// Bytes from `earlier` to this place; none if `earlier` lies above it. Places that two files
    /// tell, or two looks at a store in use, may lie in any order.
    #[must_use]
    #[inline]
    pub const fn checked_since(self, earlier: Rsn) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }
}

impl fmt::Display for Rsn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

/// The number of a page. Page `n` lies `n` pages from the start of a page file; 0 is never a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageNumber(pub u64);

impl PageNumber {
    /// No page.
    pub const NONE: PageNumber = PageNumber(0);

    /// The number itself.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for PageNumber {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

/// A running transaction. The number is used again once the transaction has ended; the order of
/// records tells which one is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

impl fmt::Display for Slot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

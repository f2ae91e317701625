//! A part of a log.
//!
//! Promise: from one position to another.
//! Never: says what lies there.

use holdfast_core::Lsn;

/// A part of a log, from one position to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsnRange {
    /// The first position of it.
    pub from: Lsn,
    /// The first position behind it.
    pub to: Lsn,
}

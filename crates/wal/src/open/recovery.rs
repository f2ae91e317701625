//! What was found when a log was opened.
//!
//! Promise: what was cut off, mended or lost is said.
//! Never: decides about it; the log's policy does.

use holdfast_log::{Lsn, LsnRange, Spoilt};

/// What was found when a log was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The last checkpoint: where a replay begins.
    pub checkpoint: Lsn,
    /// Where the log ends, and the next set will begin at the earliest.
    pub end: Lsn,
    /// Where the remains of a write that was never acknowledged have been cut off, if there were
    /// any.
    pub torn: Option<Lsn>,
    /// Bytes read to find out.
    pub bytes_scanned: u64,
    /// What the device had damaged and has been mended there from the parity, in order. Empty
    /// unless [`crate::Options::policy`] lets the log be mended.
    pub mended: Vec<LsnRange>,
    /// What the log has lost, and what was behind that: it goes on there. None unless
    /// [`crate::Options::policy`] is to cut.
    pub lost: Option<LsnRange>,
    /// Which of the two catalogues was not as it should be, and has been made again.
    pub remade: Vec<Spoilt>,
}

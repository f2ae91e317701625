//! What can go wrong, and what the caller can do about it.
//!
//! Promise: one enum per public operation; damage is named.
//! Never: hides an I/O error behind a summary.

use crate::rsn::Rsn;

/// Why the payload of a frame does not hold the records that were expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameFault {
    /// It does not begin as one of ours does: the log is not the log of a store.
    Head,
    /// It is another store's. Open the log of this one.
    Foreign,
    /// It is of another version: open the store with that one.
    OtherVersion {
        /// Version found.
        found: u16,
        /// Version this program knows.
        known: u16,
    },
    /// Frames are missing before it.
    Gap {
        /// Where the one before ended.
        end: Rsn,
        /// Where this one begins.
        first: Rsn,
    },
}

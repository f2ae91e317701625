//! Sets that are compressed before they are appended.
//!
//! Byte table: FORMAT.md, "Compressed payload".
//!
//! Promise: a set is compressed only where that is worth its while, and comes back as it was; what
//! claims to be longer than a set of this log can be is refused before memory is taken for it.
//! Never: reads outside the payload.

#[cfg(feature = "lz4")]
mod lz4;
#[cfg(not(feature = "lz4"))]
#[path = "compression/absent.rs"]
mod lz4;

pub(crate) use lz4::{unpack, with_packed};

/// How sets are compressed. Whatever is chosen, a log is read as it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// By LZ4, a set of 128 bytes or more, if that saves an eighth of it. The length of a frame in
    /// a sealed log then says how well its set shrinks: do not let somebody who sees the files
    /// choose what stands beside a secret in one set.
    #[cfg(feature = "lz4")]
    Lz4,
}

/// Why a payload was not decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnpackFault {
    /// It is no compressed set, or longer than one can be.
    #[cfg_attr(not(feature = "lz4"), allow(dead_code))]
    Damaged,
    /// This program was built without LZ4.
    #[cfg_attr(feature = "lz4", allow(dead_code))]
    Absent,
}

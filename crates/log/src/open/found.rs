//! What a scan of the segments meets, and what it found.
//!
//! Promise: damage is told with its position, and with what was known in front of it.
//! Never: reads.

use std::io;

use holdfast_core::Lsn;
use holdfast_core::frame::FrameHeader;
use holdfast_core::recovery::Verdict;

use crate::range::LsnRange;

/// What a scan does about damage below what is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDamage {
    /// Ends there.
    Stop,
    /// Mends it from the parity; ends there if that is not enough.
    Mend,
    /// Mends it from the parity; goes on behind it if that is not enough.
    Pass,
}

/// What a scan meets, in order.
pub(crate) enum Met<'a> {
    /// A whole frame, up to the next one.
    Frame(&'a FrameHeader, &'a [u8]),
    /// Bytes that are lost; and the frame that begins there, if its header at least is whole.
    Lost(LsnRange, Option<(FrameHeader, &'a [u8])>),
    /// A hole that an open has cut.
    Hole(LsnRange),
    /// What was truncated.
    Cut(LsnRange),
}

/// Who is shown what a scan meets. An error of theirs ends it.
pub(crate) type Visit<'a> = dyn FnMut(Met<'_>) -> io::Result<()> + 'a;

/// A stretch that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) stretch: LsnRange,
    /// What the newest mark in front of it says.
    pub(crate) released: Lsn,
}

/// What a scan found.
pub(crate) struct Found {
    pub(crate) verdict: Verdict,
    /// Everything below is known to have been durable.
    pub(crate) proved: Lsn,
    /// What was passed, in order.
    pub(crate) lost: Vec<Lost>,
    /// The newest mark's position, or the catalogue's if none is newer.
    pub(crate) released: Lsn,
    /// Where the next drain starts, if all of it is on the device.
    pub(crate) sealed: Lsn,
    /// The last block boundary at which a frame ended below `proved`: what lies behind it may be in
    /// a cache alone, whatever syncs say from now on.
    pub(crate) kept: Lsn,
    /// Generation of the last frame.
    pub(crate) generation: u32,
    pub(crate) bytes_scanned: u64,
    /// Frames accepted.
    pub(crate) frames: u64,
}

/// What a scan found, and what was done about it.
pub(crate) struct Recovered {
    pub(crate) found: Found,
    /// What has been written back.
    pub(crate) mended: Vec<LsnRange>,
    /// What is to be cut out of the log; `found` is of the log without it.
    pub(crate) lost: Option<LsnRange>,
}

//! How long the segment files of a log are.
//!
//! Promise: the same for all of them.
//! Never: opens one.

use holdfast_core::frame::BLOCK_BYTES;

use crate::config::Parity;
use crate::format::stripe::{GROUP_BYTES, stripe_bytes};

/// What every segment file of a log is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) segment_bytes: u64,
    pub(crate) parity: Parity,
}

impl Shape {
    /// How long each file is.
    pub(crate) fn file_bytes(self) -> u64 {
        let Shape { segment_bytes, parity } = self;
        let groups = match parity {
            Parity::None => 0,
            Parity::TenPercent => segment_bytes / stripe_bytes(segment_bytes),
        };
        BLOCK_BYTES + segment_bytes + groups * GROUP_BYTES
    }
}

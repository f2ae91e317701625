//! How quickly a new segment file is filled with zeros.
//!
//! Promise: a segment that is made ahead of time leaves most of the device to commits; as soon as
//! somebody waits for it, it gets all of the device.
//! Never: delays whoever waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes written at once at full speed.
const PIECE_BYTES: u64 = 1 << 20;
/// Bytes written at once beside commits: what one of them may have to wait for.
const SMALL_PIECE_BYTES: u64 = 64 << 10;
/// How many times as long as a small piece took is paused after it.
const PAUSES: u32 = 3;
/// A device that stalls is not left alone for longer.
const PAUSE_MAX: Duration = Duration::from_millis(10);

/// The pace of one segment.
#[derive(Clone, Copy)]
pub(crate) enum Pace<'a> {
    /// Somebody waits.
    Full,
    /// Nobody waits until this says so.
    Beside(&'a AtomicBool),
}

impl Pace<'_> {
    /// How many bytes to write next.
    pub(crate) fn piece_bytes(self) -> u64 {
        if self.hurries() { PIECE_BYTES } else { SMALL_PIECE_BYTES }
    }

    /// Pauses after a piece that was begun at `began`.
    pub(crate) fn pause(self, began: Instant) {
        if !self.hurries() {
            std::thread::sleep((began.elapsed() * PAUSES).min(PAUSE_MAX));
        }
    }

    fn hurries(self) -> bool {
        match self {
            Pace::Full => true,
            // Nothing else depends on it: a pause too many is all that a late look costs.
            Pace::Beside(hurry) => hurry.load(Ordering::Relaxed),
        }
    }
}

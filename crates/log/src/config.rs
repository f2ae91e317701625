//! What a log is told when it is made or opened.
//!
//! Promise: every size is checked once, at the door.
//! Never: changes while a log is open.

use holdfast_core::frame::BLOCK_BYTES;
use holdfast_core::ring::{RESERVE_BYTES, SPAN_BYTES_MAX};

use crate::error::ConfigFault;

/// Smallest segment: sixteen blocks.
pub const SEGMENT_BYTES_MIN: u64 = 16 * BLOCK_BYTES;
/// Largest segment.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 30;
/// Most segments made at once by `create`.
pub const SEGMENTS_MAX: u32 = 4096;
/// Largest ring: a power of two, as many of the largest segments as are made at once.
pub const RING_BYTES_MAX: u64 = (SEGMENTS_MAX / 2) as u64 * SEGMENT_BYTES_MAX;

const _: () = assert!(SEGMENT_BYTES_MIN >= 2 * RESERVE_BYTES); // a ring of two holds data
const _: () = assert!(SPAN_BYTES_MAX <= SEGMENT_BYTES_MAX);

/// Where frames stay that are durable and still needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// In the ring, until the reader releases them: for one that applies them elsewhere and has to
    /// find them fast. The log is never longer than its ring.
    InRing,
    /// On the device, until the reader's mark has passed them: for a log as long as its disk, which
    /// [`crate::Cursor`]s read. The ring holds only what is not durable yet.
    OnDevice,
}

/// What a log keeps to mend itself from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Parity {
    /// Nothing: damage is noticed, and that is all.
    None = 0,
    /// Six blocks for every 64 of the log (or for a whole segment, if that is smaller), written
    /// with them. Any five blocks lost of those 64 are given back, so any burst of 20 KiB.
    TenPercent = 1,
}

/// What an open does about acknowledged data that the device damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Refuses, and changes nothing.
    Refuse,
    /// Mends it from the parity, in place, and refuses where that is not enough.
    Repair,
    /// Mends what can be mended. Where that is not enough, the log ends before the damage and says
    /// what it lost; what is appended from then on lies behind the loss, so that no position means
    /// two things. Nothing that was lost is overwritten before a checkpoint has passed it. Of a log
    /// that stays on its device; a ring has no place for a hole.
    Cut,
}

/// How much of a log that stays on its device is read when it is opened from its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// Its end, from the last watermark in its catalogue on: at most a few segments, however long
    /// the log. What lies before is checked when it is read.
    Tail,
    /// Everything that is needed, so that damage anywhere keeps it from being opened.
    Whole,
}

/// Sizes of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// Bytes of frames in one segment file: a power of two, at most half the ring. Fixed when the
    /// log is made; `open` takes it from the catalogue and ignores this field.
    pub segment_bytes: u64,
    /// Segment files made, zeroed and synced by `create`; at least 2. More follow if needed.
    pub segments: u32,
    /// Most bytes that may be stable without being durable. One frame is always admitted when
    /// nothing is dirty, so 0 means one frame at a time.
    pub dirty_bytes_max: u64,
    /// Where durable frames stay. A log may be opened with another than before.
    pub retention: Retention,
    /// What the log keeps to mend itself from. Fixed when the log is made, like `segment_bytes`.
    pub parity: Parity,
    /// What to do about damaged acknowledged data.
    pub policy: Policy,
    /// How much of it an open reads if it stays on its device.
    pub scan: Scanned,
}

impl LogConfig {
    /// A log that is never longer than its ring, all of which may wait for the device, without
    /// parity. Damage keeps it from being opened.
    #[must_use]
    pub const fn in_ring(ring_bytes: u64, segment_bytes: u64, segments: u32) -> LogConfig {
        LogConfig {
            segment_bytes,
            segments,
            dirty_bytes_max: ring_bytes,
            retention: Retention::InRing,
            parity: Parity::None,
            policy: Policy::Refuse,
            scan: Scanned::Tail,
        }
    }

    /// The sizes of a log that is made for a ring: its worth of segments, and the one that is got
    /// ready.
    ///
    /// # Errors
    /// No log has such sizes.
    pub fn for_ring(ring_bytes: u64, segment_bytes: u64) -> Result<LogConfig, ConfigFault> {
        LogConfig::in_ring(ring_bytes, segment_bytes, 2).check()?;
        let segments = u32::try_from(ring_bytes / segment_bytes).unwrap_or(u32::MAX);
        match ring_bytes.is_power_of_two() && (2..SEGMENTS_MAX).contains(&segments) {
            true => Ok(LogConfig::in_ring(ring_bytes, segment_bytes, segments + 1)),
            false => Err(ConfigFault::RingBytes { found: ring_bytes }),
        }
    }

    /// Whether a log can be made with these sizes.
    pub(crate) fn check(&self) -> Result<(), ConfigFault> {
        let sizes = SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX;
        if !self.segment_bytes.is_power_of_two() || !sizes.contains(&self.segment_bytes) {
            return Err(ConfigFault::SegmentBytes { found: self.segment_bytes });
        }
        if !(2..=SEGMENTS_MAX).contains(&self.segments) {
            return Err(ConfigFault::Segments { found: self.segments });
        }
        self.check_policy()
    }

    /// Whether a log can be opened with this policy.
    pub(crate) fn check_policy(&self) -> Result<(), ConfigFault> {
        match (self.policy, self.retention) {
            (Policy::Cut, Retention::InRing) => Err(ConfigFault::CutInRing),
            _ => Ok(()),
        }
    }
}

//! What a log is told when it is made or opened.
//!
//! Promise: the defaults suit a program that logs up to some hundred megabytes a second.
//! Never: changes while a log is open.

use holdfast_log::{LogConfig, Retention, Scanned};

/// Sizes of a log, and the threads it may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of frames in one segment file: a power of two from 64 KiB to 1 GiB. An atomic set may
    /// have half as many, and at most 4 MiB. Fixed when the log is made; later opens ignore it.
    pub segment_bytes: u64,
    /// Segment files made, zeroed and synced at once when the log is made, 2 to 4096. More follow
    /// as they are needed, and what a checkpoint has freed is used again.
    pub segments: u32,
    /// Bytes of heap for records that are not durable yet: a power of two. At least two segments
    /// are taken whatever is said here.
    pub ring_bytes: u64,
    /// The threads that the log runs for itself.
    pub background: Background,
    /// How much of the log is read when it is opened.
    pub scan: Scanned,
}

/// The threads that a log runs for itself. They end when it is closed or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// None. Whoever waits for a record writes it, and prepares a segment when one is needed. A
    /// ticket that is awaited does so when it is polled, which blocks its executor.
    None,
    /// One that prepares segments, so that nobody waits for that.
    Prepare,
    /// That one, and one that writes whatever is appended, so that tickets resolve by themselves.
    DrainAndPrepare,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            segment_bytes: 16 << 20,
            segments: 3,
            ring_bytes: 32 << 20,
            background: Background::None,
            scan: Scanned::Tail,
        }
    }
}

impl Options {
    /// The default sizes, with these threads.
    #[must_use]
    pub fn with(background: Background) -> Options {
        Options { background, ..Options::default() }
    }

    /// As the log below wants it. What is stable counts for nothing here, so all of the ring may be
    /// dirty.
    pub(crate) fn config(&self) -> LogConfig {
        LogConfig {
            segment_bytes: self.segment_bytes,
            segments: self.segments,
            dirty_bytes_max: u64::MAX,
            retention: Retention::OnDevice,
            scan: self.scan,
        }
    }
}

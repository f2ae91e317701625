//! What a log is told when it is made or opened.
//!
//! Promise: the defaults suit a program that logs up to some hundred megabytes a second.
//! Never: changes while a log is open.

#[cfg(feature = "seal")]
use std::sync::Arc;

use holdfast_log::{LogConfig, Parity, Policy, Retention, Scanned};

use crate::compression::Compression;
#[cfg(feature = "seal")]
use crate::sealing::{Keys, Padding};

/// Sizes of a log, the threads it may start, and what is done to its records. Read the fields, set
/// them with the methods: there may be more one day.
///
/// ```
/// use holdfast_wal::{Background, Options};
///
/// let options = Options::new().with_segments(8).with_background(Background::Prepare);
/// assert_eq!(options.segments, 8);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    /// What the log keeps to mend itself from. Fixed when the log is made; later opens ignore it.
    pub parity: Parity,
    /// What to do when an open finds that the device damaged what was durable.
    pub policy: Policy,
    /// The threads that the log runs for itself.
    pub background: Background,
    /// How much of the log is read when it is opened.
    pub scan: Scanned,
    /// How sets are compressed from now on.
    pub compression: Compression,
    /// The keys of a sealed log; none, if it is not sealed. Whether it is, is decided when it is
    /// made.
    #[cfg(feature = "seal")]
    pub keys: Option<Arc<Keys>>,
    /// To what length the sets of a sealed log are filled up from now on. Refused without keys.
    #[cfg(feature = "seal")]
    pub padding: Padding,
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
        Options::new()
    }
}

impl Options {
    /// The default sizes, and no threads.
    #[must_use]
    pub const fn new() -> Options {
        Options {
            segment_bytes: 16 << 20,
            segments: 3,
            ring_bytes: 32 << 20,
            parity: Parity::None,
            policy: Policy::Refuse,
            background: Background::None,
            scan: Scanned::Tail,
            compression: Compression::None,
            #[cfg(feature = "seal")]
            keys: None,
            #[cfg(feature = "seal")]
            padding: Padding::None,
        }
    }

    /// With other [`Options::segment_bytes`].
    #[must_use]
    pub const fn with_segment_bytes(mut self, segment_bytes: u64) -> Options {
        self.segment_bytes = segment_bytes;
        self
    }

    /// With other [`Options::segments`].
    #[must_use]
    pub const fn with_segments(mut self, segments: u32) -> Options {
        self.segments = segments;
        self
    }

    /// With other [`Options::ring_bytes`].
    #[must_use]
    pub const fn with_ring_bytes(mut self, ring_bytes: u64) -> Options {
        self.ring_bytes = ring_bytes;
        self
    }

    /// With other [`Options::background`].
    #[must_use]
    pub const fn with_background(mut self, background: Background) -> Options {
        self.background = background;
        self
    }

    /// With other [`Options::parity`].
    #[must_use]
    pub const fn with_parity(mut self, parity: Parity) -> Options {
        self.parity = parity;
        self
    }

    /// With other [`Options::policy`].
    #[must_use]
    pub const fn with_policy(mut self, policy: Policy) -> Options {
        self.policy = policy;
        self
    }

    /// With other [`Options::scan`].
    #[must_use]
    pub const fn with_scan(mut self, scan: Scanned) -> Options {
        self.scan = scan;
        self
    }

    /// With other [`Options::compression`].
    #[must_use]
    pub const fn with_compression(mut self, compression: Compression) -> Options {
        self.compression = compression;
        self
    }

    /// With other [`Options::keys`]: the log is sealed.
    #[cfg(feature = "seal")]
    #[must_use]
    pub fn with_keys(self, keys: impl Into<Arc<Keys>>) -> Options {
        Options { keys: Some(keys.into()), ..self }
    }

    /// With other [`Options::padding`].
    #[cfg(feature = "seal")]
    #[must_use]
    pub const fn with_padding(mut self, padding: Padding) -> Options {
        self.padding = padding;
        self
    }

    /// As the log below wants it. What is stable counts for nothing here, so all of the ring may be
    /// dirty.
    pub(crate) fn config(&self) -> LogConfig {
        LogConfig {
            segment_bytes: self.segment_bytes,
            segments: self.segments,
            dirty_bytes_max: u64::MAX,
            retention: Retention::OnDevice,
            parity: self.parity,
            policy: self.policy,
            scan: self.scan,
        }
    }
}

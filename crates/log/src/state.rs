//! What an open log is made of, and what can be read of it at once.
//!
//! Promise: an open log that is dropped loses nothing that was stable.
//! Never: waits, or writes to a device.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_core::Lsn;
use holdfast_core::frame::Sealer;
use holdfast_core::ring::Geometry;
use holdfast_io::{Clock, Opener};
use holdfast_memory::Region;

use crate::append::progress::{Moved, Progress};
use crate::config::Retention;
use crate::format::pads::PadChecks;
use crate::outcome::{Health, Marks};
use crate::read::cuts::Cuts;
use crate::read::damaged::DamagedFrames;
use crate::read::frames::Frames;
use crate::rest::Rest;
use crate::segments::Segments;
use crate::segments::reconstruct::Mender;
use crate::words;

/// An open log. Dropping it without [`Log::close`] loses nothing that was stable.
pub struct Log {
    pub(crate) region: Arc<Region>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sealer: Sealer,
    pub(crate) pads: PadChecks,
    pub(crate) geometry: Geometry,
    /// Most bytes that may be stable without being durable.
    pub(crate) dirty_bytes_max: AtomicU64,
    pub(crate) retention: Retention,
    pub(crate) generation: u32,
    pub(crate) segments: Segments,
    pub(crate) progress: Mutex<Progress>,
    /// Told whenever a drain ends or ring space is released.
    pub(crate) moved: Moved,
    /// Gives readers back what the device damaged, if the log has parity.
    pub(crate) mender: Option<Mender>,
    pub(crate) mended_blocks: AtomicU64,
    /// The tail at the last call of `prepare`.
    pub(crate) idle_tail: AtomicU64,
    pub(crate) cuts: Cuts,
    /// What of the ring memory has damaged.
    pub(crate) damaged: DamagedFrames,
    /// Where the preparer is, if it rests.
    pub(crate) preparer: Rest,
}

impl Log {
    /// The frames from one boundary to another, pinned in the ring.
    ///
    /// # Panics
    /// If `from` has been released, or `to` is not published.
    pub fn frames(&self, from: Lsn, to: Lsn) -> Frames<'_> {
        let pin = self.region.pin(from.get());
        assert!(to <= self.marks().tail, "only published frames can be read");
        Frames { pin, sealer: self.sealer, from, to }
    }

    /// As [`Log::frames`], where the caller cannot know whether the ring has them.
    pub(crate) fn try_frames(&self, from: Lsn, to: Lsn) -> Option<Frames<'_>> {
        let pin = self.region.try_pin(from.get())?;
        (to <= self.marks().tail).then_some(Frames { pin, sealer: self.sealer, from, to })
    }

    /// How many blocks of 4 KiB readers of this log have been given from the parity, because the
    /// device has damaged them. It stays so until the log is opened with [`Policy::Repair`].
    ///
    /// [`Policy::Repair`]: crate::Policy::Repair
    #[must_use]
    pub fn mended_blocks(&self) -> u64 {
        self.mended_blocks.load(Ordering::Relaxed)
    }

    /// Mends what parity can give back of `bytes`, durable blocks of one span that begin at `from`
    /// and were read from its segment. Returns whether that changed anything.
    pub(crate) fn rebuild(&self, from: Lsn, bytes: &mut [u8]) -> bool {
        let segment = self.segments.find(self.geometry.segment_of(from));
        let (Some(mender), Some(segment)) = (&self.mender, segment) else { return false };
        let mended = mender.mend(&segment, from, bytes, self.marks().durable).len();
        self.mended_blocks.fetch_add(mended as u64, Ordering::Relaxed);
        mended > 0
    }

    /// Copies published bytes, which must lie inside one frame.
    ///
    /// # Panics
    /// If they have been released, or are not published.
    pub fn copy_bytes(&self, lsn: Lsn, into: &mut [u8]) {
        let pin = self.region.pin(lsn.get());
        into.copy_from_slice(pin.bytes(lsn.get(), into.len()));
    }

    /// The marks now.
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.region.marks().into()
    }

    /// Whether the log still accepts frames.
    #[must_use]
    pub fn health(&self) -> Health {
        if let Err(forked) = self.check_opener() {
            return Health::Poisoned(forked);
        }
        let poison = self.progress().poison.clone();
        poison.map_or(Health::Sound, Health::Poisoned)
    }

    /// The process that has the log. A child that it forks may read, and do nothing else.
    #[must_use]
    pub fn opener(&self) -> Opener {
        self.region.opener()
    }

    /// Refuses a child before it comes to a lock that nobody gives back there, or to memory that is
    /// its parent's.
    pub(crate) fn check_opener(&self) -> Result<(), Arc<io::Error>> {
        self.opener().check().map_err(Arc::new)
    }

    /// The number of the segment that a position lies in.
    #[must_use]
    pub fn segment_number(&self, lsn: Lsn) -> u64 {
        self.geometry.segment_of(lsn)
    }

    /// The first position of a segment.
    #[must_use]
    pub fn segment_start(&self, number: u64) -> Lsn {
        self.geometry.segment_start(number)
    }

    /// The longest payload one frame can have.
    #[must_use]
    pub fn payload_bytes_max(&self) -> u64 {
        self.geometry.payload_bytes_max()
    }

    #[inline]
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        self.region.word(index)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Memory that a child was given may still be its parent's.
        if !self.opener().is_here() {
            return;
        }
        self.word(words::OPENER).store(0, Ordering::Relaxed);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Log").field("marks", &self.marks()).finish_non_exhaustive()
    }
}

//! What operations of a log come to.
//!
//! Promise: values, which stay as they were when they were returned.
//! Never: holds the log.

use std::io;
use std::sync::Arc;

use holdfast_core::Lsn;

use crate::error::FileFault;
use crate::range::LsnRange;

/// Where a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The frame's position.
    pub lsn: Lsn,
    /// Where its payload lies: parts follow one another without gaps.
    pub payload: Lsn,
    /// Where the next frame starts; `commit(end)` makes this frame durable.
    pub end: Lsn,
}

/// What a user says of the payload of a frame, and reads back in its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Number of records in it.
    pub records: u16,
    /// What was done to it: a sum of [`crate::FLAG_COMPRESSED`] and [`crate::FLAG_SEALED`].
    pub flags: u8,
}

/// What one drain did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Bytes written and synced; 0 when there was nothing to do.
    pub bytes: u64,
    /// The durable mark afterwards.
    pub durable: Lsn,
}

/// The marks of a log, each a position: `released <= durable <= tail`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Below this the reader is done and the ring has been reused.
    pub released: Lsn,
    /// Below this everything is on the device.
    pub durable: Lsn,
    /// Below this everything is published in the ring.
    pub tail: Lsn,
}

impl From<holdfast_memory::Marks> for Marks {
    #[inline]
    fn from(marks: holdfast_memory::Marks) -> Marks {
        Marks { released: Lsn(marks.released), durable: Lsn(marks.durable), tail: Lsn(marks.tail) }
    }
}

/// Whether a log still accepts frames.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Health {
    /// All is well.
    Sound,
    /// A write or a sync failed; the bytes in the ring can still be read.
    Poisoned(Arc<io::Error>),
}

/// Where an opened log came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The region had survived: everything that was stable is there.
    Ring,
    /// The region was new: everything that was durable is there.
    Segments,
}

/// What the end of the log looked like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Nothing was there after the last frame.
    Clean,
    /// The remains of a write that never completed were there, and have been cut off.
    Torn {
        /// Where.
        at: Lsn,
    },
    /// The ring was damaged where the segments were not; it has been filled again from them.
    Healed {
        /// The first damaged frame.
        at: Lsn,
    },
}

/// How a log was recovered when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Where from.
    pub source: Source,
    /// Apply frames from here on to the home.
    pub released: Lsn,
    /// On the device up to here.
    pub durable: Lsn,
    /// Recovered up to here.
    pub tail: Lsn,
    /// How it ended.
    pub verdict: Verdict,
    /// Bytes read from segments or ring to find out.
    pub bytes_scanned: u64,
    /// The generation of frames appended from now on.
    pub generation: u32,
    /// What was damaged on the device and has been mended there from the parity, in order.
    pub mended: Vec<LsnRange>,
    /// What has been cut out of the log because it was damaged. The log goes on behind it.
    pub lost: Option<LsnRange>,
    /// What the device had lost of what counted as durable, and has been given again from the ring.
    pub again: Vec<LsnRange>,
    /// The first of that which could not be written: it is in the ring alone.
    pub lacks: Option<LsnRange>,
    /// Which of the two catalogues was not as it should be, and has been made again.
    pub remade: Vec<Spoilt>,
    /// Segments that were longer than they were made, and have been cut to their length.
    pub shortened: Vec<Spoilt>,
}

/// A file that is not as it should be: a catalogue whose copy is, or a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoilt {
    /// Name in the log's directory.
    pub name: String,
    /// What is wrong with it.
    pub fault: FileFault,
}

/// What mending a poisoned log took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mended {
    /// Bytes below the durable mark that were written, synced and read again.
    pub rewritten_bytes: u64,
    /// Bytes that only the ring has; the next drain brings them to the device.
    pub undrained_bytes: u64,
}

//! What can go wrong, and what the caller can do about it.
//!
//! Promise: one enum per public operation; damage is named by file or position.
//! Never: hides an I/O error behind a summary.

use std::io;
use std::sync::Arc;

use holdfast_core::Lsn;
use holdfast_core::handover::MarksFault;

/// What no log can have. Correct the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigFault {
    /// Not a power of two, or outside 64 KiB..=1 GiB.
    SegmentBytes {
        /// What was asked for.
        found: u64,
    },
    /// Outside 2..=4096.
    Segments {
        /// What was asked for.
        found: u32,
    },
    /// No power of two, less than two segments, or more than are made at once.
    RingBytes {
        /// What was asked for.
        found: u64,
    },
    /// Nothing can be cut out of a log that stays in its ring. Choose another policy.
    CutInRing,
}

/// Why no log was made. Whatever was half made is overwritten by the next attempt.
#[derive(Debug)]
#[non_exhaustive]
pub enum CreateError {
    /// Correct the configuration.
    Config(ConfigFault),
    /// There is a log here already: open it, or choose another directory.
    Exists,
    /// There is something else here: choose an empty directory.
    NotEmpty {
        /// One of the names found.
        name: String,
    },
    /// Segments of a log lie here that hold something, and no catalogue says which they are: repair
    /// that log into another directory. What an interrupted repair left is removed by hand.
    Used {
        /// One of the segments.
        name: String,
    },
    /// The directory could not be written. Try again when the cause is gone.
    Io(io::Error),
}

/// Why a log was not made again from memory. Nothing of the memory was changed, and whatever was
/// half made is overwritten by the next attempt.
#[derive(Debug)]
#[non_exhaustive]
pub enum RemakeError {
    /// The directory cannot be given the log: see what it says.
    Place(CreateError),
    /// The memory cannot give it one: it does not have the log, or is too small for the
    /// configuration.
    Memory(OpenError),
}

/// What is wrong with a file of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFault {
    /// It is not there, and what it says is needed: [`crate::Log::repair`] finds it out anew.
    Missing,
    /// Too short for what it says it holds.
    Length {
        /// Bytes found.
        found: u64,
    },
    /// Longer than it was made. Where that was added behind its end, cut it off.
    TooLong {
        /// Bytes found.
        found: u64,
        /// Bytes that it was made with.
        length: u64,
    },
    /// It does not begin as a file of this kind does.
    Magic,
    /// Its check does not match its contents.
    Check,
    /// It belongs to another log.
    Foreign,
    /// It is whole, but says something that cannot be.
    Contents,
    /// It is older than the segment files, which hold more than it knows of: a copy whose files are
    /// of different moments.
    Older,
    /// A directory, a link, or a pipe has its name. Move that away.
    NotAFile,
    /// Its device does not give it.
    Unreadable,
}

/// Why a log was not opened. Nothing that was acknowledged has been changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Correct the configuration.
    Config(ConfigFault),
    /// There is no catalogue, and no segment that was used: not the directory of a log.
    NoLog,
    /// Made by another version: open it with that one.
    OtherVersion {
        /// Version found.
        found: u32,
        /// Version this program knows.
        known: u32,
    },
    /// A file is damaged where acknowledged data depends on it. Restore it.
    File {
        /// Name in the log's directory.
        name: String,
        /// What is wrong with it.
        fault: FileFault,
    },
    /// The catalogue names a file that is not there. Restore it.
    MissingSegment {
        /// Name in the log's directory.
        name: String,
    },
    /// Acknowledged bytes are damaged. Nothing was changed; restore them, or salvage the rest.
    Corrupt {
        /// First position lost.
        from: Lsn,
        /// First position known to be good again, or the watermark that proves the loss.
        to: Lsn,
    },
    /// The region belongs to another log. Use the region of this one, or a new one.
    ForeignRegion {
        /// Identity of the region.
        region: [u8; 16],
        /// Identity of the log.
        log: [u8; 16],
    },
    /// The region holds frames of this log, but the log has been opened without it since. What is
    /// only in the region is out of order now; save the region, then open with a new one.
    StaleRegion {
        /// Generation of the region.
        region: u32,
        /// First generation this region could have had.
        log: u32,
    },
    /// The device has frames behind the end of the ring, which a later state of this region brought
    /// there: it is a copy of an earlier moment. Use the region itself; should that be gone, put
    /// this one aside and open with a new one.
    OlderRegion {
        /// Where the ring ends.
        region: Lsn,
        /// Up to where, at least, the device is known to go.
        log: Lsn,
    },
    /// The marks in the region contradict each other or the log.
    Marks(MarksFault),
    /// The ring is too small for this log's segments or for what has to go back into it.
    RingTooSmall {
        /// Ring at hand.
        ring_bytes: u64,
        /// Ring needed.
        needed_bytes: u64,
    },
    /// This region is already in use by an open log of this process.
    InUse,
    /// A file could not be read or written. Never taken for the end of the log.
    Io(io::Error),
}

/// Why nothing was cut off, unless the log failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum TruncateError {
    /// What lies there is no longer needed, and cannot be the end. Cut at or above `first`.
    Truncated {
        /// The first position that is needed.
        first: Lsn,
    },
    /// No frame begins or ends there, or damage before it keeps that from being known.
    NoBoundary {
        /// What was asked for.
        lsn: Lsn,
    },
    /// What had been appended could not be made durable; or, if poisoned, the cut itself: whether
    /// it was made shows when the log is opened anew.
    NotDurable(CommitError),
    /// The device could not be read. Nothing was changed.
    Io(io::Error),
}

/// Why no new log was made of a damaged one. The damaged one is as it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum RepairError {
    /// The damaged log cannot be read even so far: its catalogue or a segment file is missing, or
    /// its device fails beyond the last frame, where that may hide others.
    Source(OpenError),
    /// The new log could not be made. Remove what is half made before the next attempt.
    Target(CreateError),
}

/// Why a frame was not appended. The log is unchanged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AppendError {
    /// Split the records and try again.
    TooLarge {
        /// What was offered.
        payload_bytes: u64,
        /// The most that one frame of this log takes.
        payload_bytes_max: u64,
    },
    /// The ring is full, or too much is dirty: [`crate::Log::wait_for_room`], then try again.
    Full,
    /// A mark found no place in the ring, and the catalogue could not be written (a full disk, most
    /// often). Nothing is lost and nothing is poisoned: make space, then say it again.
    Unmarked(Arc<io::Error>),
    /// An earlier write or sync failed. Nothing is accepted until the log is opened anew.
    Poisoned(Arc<io::Error>),
    /// The log stands in another process and cannot be reached any more. Open it anew; whether the
    /// frame is in it shows then.
    Unreachable(Arc<io::Error>),
}

/// Why bytes are not durable.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CommitError {
    /// A write or a sync failed. Final: every later call says the same.
    Poisoned(Arc<io::Error>),
    /// No segment could be prepared (a full disk, most often). Nothing is lost and nothing is
    /// poisoned: make space, then call again.
    Unprepared(Arc<io::Error>),
    /// The log stands in another process and cannot be reached any more. Open it anew; how far it
    /// is durable shows then.
    Unreachable(Arc<io::Error>),
}

/// Why a note was not made, or the notes not read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NoteError {
    /// There is no room: replace the notes by those that are still needed.
    Full,
    /// A note is damaged. What the notes are about has to be learned in another way.
    Damaged {
        /// Where it lies, in bytes from the start of the region.
        offset: u64,
    },
    /// The log cannot be reached any more. Open it anew.
    Unreachable(Arc<io::Error>),
}

/// Why bytes of the log were not read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The ring does not have them: released already, or not published yet. Ask for what lies
    /// between the marks.
    Outside {
        /// What was asked for.
        from: Lsn,
        /// And up to where.
        to: Lsn,
    },
    /// No frame starts here, or the one that does goes on behind the end. Ask from where a frame
    /// starts to where one ends.
    Boundary(Lsn),
    /// Memory has damaged the frame that starts here, and the log's disk does not have it whole.
    /// What lies before it can be read; the whole log can be once that memory is given up.
    Damaged(Lsn),
    /// The log cannot be reached any more. Open it anew.
    Unreachable(Arc<io::Error>),
}

//! What can go wrong, and what the caller can do about it.
//!
//! Promise: one enum per public operation; damage is named by file or position; what is printed is
//! one line, of what failed and what can be done.
//! Never: hides an I/O error behind a summary.

use std::io;
use std::sync::Arc;

use holdfast_log::{ConfigFault, FileFault, Lsn};

use crate::format::FormatError;

mod convert;

/// Why no log was made. Whatever was half made is overwritten by the next attempt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// Correct the options.
    #[error("no log has such sizes: {0}")]
    Options(ConfigFault),
    /// Only sealed sets are filled up, and there are no keys: give some, or leave out the padding.
    #[error("only sealed sets are filled up; give keys, or leave out the padding")]
    PaddingWithoutKeys,
    /// There is a log here already: open it, or choose another directory.
    #[error("there is a log here already; open it")]
    Exists,
    /// There is something else here: choose an empty directory.
    #[error("`{name}` is here; choose an empty directory")]
    NotEmpty {
        /// One of the names found.
        name: String,
    },
    /// Segments of a log lie here that hold something, and no catalogue says which they are: repair
    /// that log into another directory. What an interrupted repair left is removed by hand.
    #[error(
        "`{name}` holds something of a log whose catalogue is gone; repair that log into another \
         directory"
    )]
    Used {
        /// One of the segments.
        name: String,
    },
    /// Somebody has a log open here: choose another directory.
    #[error("a log is open here; choose another directory")]
    InUse,
    /// The directory could not be written; its disk may be full. Try again when the cause is gone.
    #[error("the log's directory cannot be written: {0}")]
    Io(io::Error),
}

/// What is wrong with the label of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelFault {
    /// There is none: the log was not made by this crate, or the file `label` is gone.
    #[error("there is none")]
    Missing,
    /// It does not begin as a label does.
    #[error("it does not begin as one")]
    NoLabel,
    /// Its check does not match its contents.
    #[error("its check does not match")]
    Check,
    /// It belongs to another log.
    #[error("it belongs to another log")]
    Foreign,
    /// The log is sealed in a way that this version does not know.
    #[error("it tells of a seal that this version does not know")]
    Seal,
}

/// Why a log was not opened. Nothing that was durable has been changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no log here: create one.
    #[error("there is no log here; create one")]
    NoLog,
    /// Correct the options.
    #[error("no log has such sizes: {0}")]
    Options(ConfigFault),
    /// There was no log here and none could be made.
    #[error("no log was made: {0}")]
    NotCreated(CreateError),
    /// The log holds another type of record: open it with that one.
    #[error("the records of this log are `{found}`, not `{wanted}`")]
    OtherRecord {
        /// Name of the type that it was made with.
        found: String,
        /// Name of the type that was asked for.
        wanted: String,
    },
    /// The log is of this record type in another version: open it with the program of that version.
    #[error("the records are of version {found}; this program knows {known}")]
    OtherRecordVersion {
        /// Version found.
        found: u32,
        /// Version of the type that was asked for.
        known: u32,
    },
    /// The records are written in another format: open it with that one.
    #[error("the records are written as `{found}`, not as `{wanted}`")]
    OtherFormat {
        /// Name of the format that it was made with.
        found: String,
        /// Name of the format that was asked for.
        wanted: String,
    },
    /// The log was made by another version of this crate: open it with that one.
    #[error("the log is of version {found}; this program knows {known}")]
    OtherVersion {
        /// Version found.
        found: u32,
        /// Version this program knows.
        known: u32,
    },
    /// The log is sealed: give its keys, to a program that is built with the feature `seal`.
    #[error("the log is sealed; give its keys")]
    Sealed,
    /// The log is not sealed, and keys were given: open it without, or seal another.
    #[error("the log is not sealed; open it without keys")]
    NotSealed,
    /// Only sealed sets are filled up, and the log is not sealed: leave out the padding.
    #[error("the log is not sealed, so nothing is filled up; leave out the padding")]
    PaddingWithoutKeys,
    /// The log was made with another key of this id, or sets that are still needed were sealed with
    /// one. Give that one.
    #[error("the log is sealed with another key {id}; give that one")]
    WrongKey {
        /// The key's id.
        id: u32,
    },
    /// The label is damaged or gone: in every segment, or in the file `label` of a log that an
    /// earlier version made. Restore that file.
    #[error("{}", label_words(.0))]
    Label(LabelFault),
    /// A file is damaged where durable records depend on it. Restore it.
    #[error("`{name}` must be restored: {fault}")]
    File {
        /// Name in the log's directory: `catalogue`, or a segment.
        name: String,
        /// What is wrong with it.
        fault: FileFault,
    },
    /// A file belongs to another log. Restore the right one.
    #[error("`{name}` belongs to another log; restore the right one")]
    ForeignFile {
        /// Name in the log's directory.
        name: String,
    },
    /// A file of the log is not there. Restore it.
    #[error("`{name}` is not there; restore it")]
    MissingSegment {
        /// Name in the log's directory.
        name: String,
    },
    /// Durable records are damaged. Nothing was changed: restore them, or salvage the rest.
    #[error("durable records are damaged from LSN {from} to {to}")]
    Corrupt {
        /// First position lost.
        from: Lsn,
        /// First position known to be good again, or the watermark that proves the loss.
        to: Lsn,
    },
    /// The log is open already, in this process or in another: close it there.
    #[error("the log is open already; close it there")]
    InUse,
    /// So much memory could not be had. Choose a smaller ring.
    #[error("{ring_bytes} bytes of memory cannot be had; choose a smaller ring")]
    Memory {
        /// Bytes of the ring.
        ring_bytes: u64,
    },
    /// A file could not be read or written. Never taken for the end of the log.
    #[error("a file of the log cannot be read or written: {0}")]
    Io(io::Error),
}

/// What is printed of a log without a label.
const UNLABELLED: &str = "the log does not say what its records are: the server, a volume or a \
                          store uses it, and opens it; or an earlier version made it, and its \
                          file `label` must be restored";

fn label_words(fault: &LabelFault) -> String {
    match fault {
        LabelFault::Missing => UNLABELLED.to_owned(),
        fault => format!("the file `label` must be restored: {fault}"),
    }
}

/// Why no new log was made of a damaged one. The damaged one is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The damaged log cannot be read even so far: see what the error says.
    #[error("the damaged log: {0}")]
    Source(OpenError),
    /// The new log could not be made: see what the error says. Remove what is half made before the
    /// next attempt.
    #[error("the new log: {0}")]
    Target(CreateError),
}

/// Why records were not appended. The log is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// Split the set, or make the record smaller: one set is at most half a segment, and 4 MiB.
    #[error("a set of {set_bytes} bytes; the log takes {set_bytes_max} at once")]
    TooLarge {
        /// Bytes of the set, encoded.
        set_bytes: u64,
        /// The most that one set of this log takes.
        set_bytes_max: u64,
    },
    /// Split the set: it has at most 65,535 records.
    #[error("a set of {records} records; a set has at most {}", u16::MAX)]
    TooMany {
        /// Records in the set.
        records: usize,
    },
    /// The format cannot write the record.
    #[error("the record cannot be written: {0}")]
    Unencodable(FormatError),
    /// The log was closed: open it anew.
    #[error("the log was closed; open it anew")]
    Closed,
    /// The ring is full and the disk has no room to drain it to. Make room, then append again.
    #[error("the log's disk is full; make room: {0}")]
    DiskFull(Arc<io::Error>),
    /// The ring is full and no segment could be made to drain it to. Try again when the cause is
    /// gone.
    #[error("no segment can be made: {0}")]
    NoSegment(Arc<io::Error>),
    /// A write or a sync failed. Nothing is accepted until the log is opened anew.
    #[error("the log failed; open it anew: {0}")]
    Failed(Arc<io::Error>),
}

/// Why records are not durable.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The disk has no room. Nothing is lost: make room, then wait again.
    #[error("the log's disk is full; make room: {0}")]
    DiskFull(Arc<io::Error>),
    /// No segment could be made. Nothing is lost: wait again when the cause is gone.
    #[error("no segment can be made: {0}")]
    NoSegment(Arc<io::Error>),
    /// A write or a sync failed. Final: what is durable shows when the log is opened anew.
    #[error("the log failed; open it anew: {0}")]
    Failed(Arc<io::Error>),
}

/// Why a checkpoint was not made. The one before holds.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// No set of records begins or ends there: use the `end` of an entry or of a ticket.
    #[error("no set of records begins or ends at {lsn}")]
    NoBoundary {
        /// What was asked for.
        lsn: Lsn,
    },
    /// The device damaged the set that begins there, or cannot give it back.
    #[error("a checkpoint cannot be here: {0}")]
    Unreadable(ReplayError),
    /// What lies before it could not be made durable, or the checkpoint itself not.
    #[error("the checkpoint is not durable: {0}")]
    NotDurable(CommitError),
    /// The log was closed: open it anew.
    #[error("the log was closed; open it anew")]
    Closed,
}

/// Why nothing was cut off, unless the log failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TruncateError {
    /// What lies there is below the checkpoint. Cut at or above `first`.
    #[error("the log begins at LSN {first} now")]
    Truncated {
        /// The checkpoint.
        first: Lsn,
    },
    /// No set of records begins or ends there: use the `end` of an entry or of a ticket. Or damage
    /// before it keeps that from being known.
    #[error("no set of records begins or ends at {lsn}")]
    NoBoundary {
        /// What was asked for.
        lsn: Lsn,
    },
    /// What had been appended could not be made durable. If that failed for good, whether the cut
    /// was made shows when the log is opened anew.
    #[error("the cut is not durable: {0}")]
    NotDurable(CommitError),
    /// The device could not be read. Nothing was changed.
    #[error("the log's device cannot be read: {0}")]
    Io(io::Error),
    /// The log was closed: open it anew.
    #[error("the log was closed; open it anew")]
    Closed,
}

/// Why a replay does not go on. Everything before was whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// What was to be read is below the checkpoint, and may have been written over. Go on from
    /// `first`.
    #[error("the log begins at LSN {first} now; go on from there")]
    Truncated {
        /// The checkpoint.
        first: Lsn,
    },
    /// The end of the log was cut off below where reading has come to: undo what was read from
    /// `from` on, and read on from there.
    #[error("the log was cut off at LSN {from}; undo what was read from there on")]
    Cut {
        /// The first position that was cut off.
        from: Lsn,
    },
    /// No whole set is where one must be: the device damaged it, or reading began amid one.
    #[error("there is no whole set of records at LSN {lsn}")]
    Damaged {
        /// Where.
        lsn: Lsn,
    },
    /// The set is as it was written, and this record of it is not whole: whoever wrote it was
    /// broken.
    #[error("record {index} of the set at LSN {lsn} was written damaged")]
    DamagedRecord {
        /// Where the set begins.
        lsn: Lsn,
        /// Which record of it, from 0.
        index: u16,
    },
    /// The record is whole and not of this type: read the log with the program that wrote it.
    #[error("record {index} of the set at LSN {lsn} is of another kind: {reason}")]
    Undecodable {
        /// Where its set begins.
        lsn: Lsn,
        /// Which record of it, from 0.
        index: u16,
        /// What the format says.
        reason: FormatError,
    },
    /// The set is sealed under a key that is not in the ring. Open the log with that one, too.
    #[error("the set at LSN {lsn} is sealed under key {id}, which is not here")]
    NoKey {
        /// Where the set begins.
        lsn: Lsn,
        /// The key's id.
        id: u32,
    },
    /// The set is as it was written, and the key of this id does not open it: that is another key,
    /// or somebody who has none wrote the set, or put it here.
    #[error("key {id} does not open the set at LSN {lsn}")]
    WrongKey {
        /// Where the set begins.
        lsn: Lsn,
        /// The key's id.
        id: u32,
    },
    /// The set is not sealed, in a log that is: somebody who has no key wrote it.
    #[error("the set at LSN {lsn} is not sealed")]
    NotSealed {
        /// Where the set begins.
        lsn: Lsn,
    },
    /// The set is sealed, in a log that is not: somebody else wrote it.
    #[error("the set at LSN {lsn} is sealed; the log is not")]
    Sealed {
        /// Where the set begins.
        lsn: Lsn,
    },
    /// The set is compressed, and this program was built without the feature `lz4`.
    #[error("the set at LSN {lsn} is compressed; build with the feature `lz4`")]
    Compressed {
        /// Where the set begins.
        lsn: Lsn,
    },
    /// A write or a sync failed, so no more records become durable. Open the log anew.
    #[error("the log failed; open it anew: {0}")]
    Failed(Arc<io::Error>),
    /// The device could not be read. Nothing is known of the record; read again from there.
    #[error("the log's device cannot be read: {0}")]
    Io(io::Error),
}

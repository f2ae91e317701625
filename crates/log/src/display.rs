//! Errors in words.
//!
//! Promise: each names the file, position or size that it is about; none ends in a full stop, so
//! that a caller can go on with what to do.
//! Never: says what to do; only the caller knows its user's commands.

use std::fmt;

use crate::commit_log::WordError;
use crate::error::{
    AppendError, CommitError, ConfigFault, CreateError, FileFault, NoteError, OpenError, ReadError,
    RemakeError, RepairError, TruncateError,
};

impl fmt::Display for ConfigFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SegmentBytes { found } => {
                write!(out, "a segment of {found} bytes is no power of two from 64 KiB to 1 GiB")
            }
            Self::Segments { found } => write!(out, "{found} segments are not 2 to 4096"),
            Self::RingBytes { found } => write!(
                out,
                "a ring of {found} bytes is no power of two with room for 2 to 4095 segments"
            ),
            Self::CutInRing => out.write_str("nothing is cut out of a log that stays in its ring"),
        }
    }
}

impl fmt::Display for RemakeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(error) => write!(out, "{error}"),
            Self::Memory(error) => write!(out, "{error}"),
        }
    }
}

impl fmt::Display for CreateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(fault) => write!(out, "{fault}"),
            Self::Exists => out.write_str("there is a log already"),
            Self::NotEmpty { name } => write!(out, "the directory is not empty: it holds {name}"),
            Self::Used { name } => write!(
                out,
                "`{name}` holds something of a log whose catalogue is gone; repair that log into \
                 another directory"
            ),
            Self::Io(error) => write!(out, "{error}"),
        }
    }
}

impl fmt::Display for RepairError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => write!(out, "the damaged log cannot be read: {error}"),
            Self::Target(error) => write!(out, "the new log cannot be made: {error}"),
        }
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { found } => write!(out, "it has {found} bytes, which is not its length"),
            Self::TooLong { found, length } => {
                write!(out, "it has {found} bytes, {} more than its length", found - length)
            }
            Self::Magic => out.write_str("it does not begin as a file of a log does"),
            Self::Check => out.write_str("its check does not match its contents"),
            Self::Foreign => out.write_str("it belongs to another log"),
            Self::Contents => out.write_str("it says something that cannot be"),
            Self::Missing => out.write_str("it is missing; a repair can make it anew"),
            Self::Older => out.write_str("it is older than the segment files"),
            Self::NotAFile => out.write_str("it is no ordinary file"),
            Self::Unreadable => out.write_str("its device does not give it"),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(fault) => write!(out, "{fault}"),
            Self::NoLog => out.write_str("there is no log: the file catalogue is missing"),
            Self::OtherVersion { found, known } => {
                write!(out, "the log has format version {found}, this program knows {known}")
            }
            Self::File { name, fault } => write!(out, "the file {name} is damaged: {fault}"),
            Self::MissingSegment { name } => write!(out, "the segment file {name} is missing"),
            Self::Corrupt { from, to } => {
                write!(out, "acknowledged bytes from LSN {} to LSN {} are damaged", from.0, to.0)
            }
            Self::ForeignRegion { .. } => out.write_str("the region belongs to another log"),
            Self::StaleRegion { region, log } => write!(
                out,
                "the region is of generation {region}, but without it the log went on to \
                 generation {log}"
            ),
            Self::OlderRegion { region, log } => write!(
                out,
                "the region is a copy of an earlier moment: it ends at LSN {}, and the log's disk \
                 goes on to LSN {} at least",
                region.0, log.0
            ),
            Self::Marks(fault) => write!(out, "the region's marks cannot be: {fault:?}"),
            Self::RingTooSmall { ring_bytes, needed_bytes } => {
                write!(out, "the ring has {ring_bytes} bytes and needs {needed_bytes}")
            }
            Self::InUse => out.write_str("the region is in use by an open log"),
            Self::Io(error) => write!(out, "{error}"),
        }
    }
}

impl fmt::Display for CommitError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisoned(error) => write!(out, "an earlier write or sync failed ({error})"),
            Self::Unprepared(error) => write!(out, "no segment could be prepared ({error})"),
            Self::Unreachable(error) => unreachable_log(out, error),
        }
    }
}

impl fmt::Display for TruncateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { first } => write!(out, "the log begins at LSN {first} now"),
            Self::NoBoundary { lsn } => write!(out, "no frame begins or ends at LSN {lsn}"),
            Self::NotDurable(error) => write!(out, "{error}"),
            Self::Io(error) => write!(out, "{error}"),
        }
    }
}

impl fmt::Display for AppendError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { payload_bytes, payload_bytes_max } => {
                write!(out, "a payload of {payload_bytes} bytes is over {payload_bytes_max}")
            }
            Self::Full => out.write_str("the ring is full or too much is dirty"),
            Self::Unmarked(error) => write!(out, "the catalogue cannot be written ({error})"),
            Self::Poisoned(error) => write!(out, "an earlier write or sync failed ({error})"),
            Self::Unreachable(error) => unreachable_log(out, error),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside { from, to } => {
                write!(out, "the ring does not have all from LSN {} to LSN {}", from.0, to.0)
            }
            Self::Boundary(lsn) => {
                write!(out, "no frame that could be read starts at LSN {}", lsn.0)
            }
            Self::Damaged(lsn) => write!(
                out,
                "memory has damaged the frame at LSN {}, and the log's disk does not have it whole",
                lsn.0
            ),
            Self::Unreachable(error) => unreachable_log(out, error),
        }
    }
}

impl fmt::Display for WordError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Unreachable(error) = self;
        unreachable_log(out, error)
    }
}

impl fmt::Display for NoteError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => out.write_str("there is no room for more notes"),
            Self::Damaged { offset } => {
                write!(out, "the note at byte {offset} of the region is damaged")
            }
            Self::Unreachable(error) => unreachable_log(out, error),
        }
    }
}

fn unreachable_log(out: &mut fmt::Formatter<'_>, error: &std::io::Error) -> fmt::Result {
    write!(out, "the log cannot be reached ({error})")
}

impl std::error::Error for ConfigFault {}
impl std::error::Error for CreateError {}
impl std::error::Error for RemakeError {}
impl std::error::Error for RepairError {}
impl std::error::Error for FileFault {}
impl std::error::Error for OpenError {}
impl std::error::Error for TruncateError {}
impl std::error::Error for AppendError {}
impl std::error::Error for CommitError {}
impl std::error::Error for ReadError {}
impl std::error::Error for WordError {}
impl std::error::Error for NoteError {}

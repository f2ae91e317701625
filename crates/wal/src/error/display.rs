//! What is printed of an error: what failed, and what can be done.
//!
//! Promise: one line each.
//! Never: leaves out the error of the machine.

use std::error::Error;
use std::fmt::{Display, Formatter, Result};

use super::{
    AppendError, CheckpointError, CommitError, CreateError, LabelFault, OpenError, RepairError,
    ReplayError, TruncateError,
};

/// A log without a label.
const UNLABELLED: &str = "the log does not say what its records are: the server, a volume or a \
                          store uses it, and opens it; or an earlier version made it, and its \
                          file `label` must be restored";

impl Display for CreateError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Options(fault) => write!(out, "no log has such sizes: {fault}"),
            Self::PaddingWithoutKeys => {
                write!(out, "only sealed sets are filled up; give keys, or leave out the padding")
            }
            Self::Exists => write!(out, "there is a log here already; open it"),
            Self::NotEmpty { name } => write!(out, "`{name}` is here; choose an empty directory"),
            Self::Used { name } => write!(
                out,
                "`{name}` holds something of a log whose catalogue is gone; repair that log into \
                 another directory"
            ),
            Self::InUse => write!(out, "a log is open here; choose another directory"),
            Self::Io(error) => write!(out, "the log's directory cannot be written: {error}"),
        }
    }
}

impl Display for LabelFault {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(match self {
            Self::Missing => "there is none",
            Self::NoLabel => "it does not begin as one",
            Self::Check => "its check does not match",
            Self::Foreign => "it belongs to another log",
            Self::Seal => "it tells of a seal that this version does not know",
        })
    }
}

impl Display for OpenError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::NoLog => write!(out, "there is no log here; create one"),
            Self::NotCreated(error) => write!(out, "no log was made: {error}"),
            Self::OtherRecord { found, wanted } => {
                write!(out, "the records of this log are `{found}`, not `{wanted}`")
            }
            Self::OtherRecordVersion { found, known } => {
                write!(out, "the records are of version {found}; this program knows {known}")
            }
            Self::OtherFormat { found, wanted } => {
                write!(out, "the records are written as `{found}`, not as `{wanted}`")
            }
            Self::OtherVersion { found, known } => {
                write!(out, "the log is of version {found}; this program knows {known}")
            }
            Self::Sealed => write!(out, "the log is sealed; give its keys"),
            Self::NotSealed => write!(out, "the log is not sealed; open it without keys"),
            Self::PaddingWithoutKeys => {
                write!(out, "the log is not sealed, so nothing is filled up; leave out the padding")
            }
            Self::WrongKey { id } => {
                write!(out, "the log is sealed with another key {id}; give that one")
            }
            Self::Label(LabelFault::Missing) => out.write_str(UNLABELLED),
            Self::Label(fault) => write!(out, "the file `label` must be restored: {fault}"),
            Self::File { name, fault } => write!(out, "`{name}` must be restored: {fault}"),
            Self::ForeignFile { name } => {
                write!(out, "`{name}` belongs to another log; restore the right one")
            }
            Self::MissingSegment { name } => write!(out, "`{name}` is not there; restore it"),
            Self::Corrupt { from, to } => {
                write!(out, "durable records are damaged from LSN {from} to {to}")
            }
            Self::InUse => write!(out, "the log is open already; close it there"),
            Self::Memory { ring_bytes } => {
                write!(out, "{ring_bytes} bytes of memory cannot be had; choose a smaller ring")
            }
            Self::Io(error) => write!(out, "a file of the log cannot be read or written: {error}"),
        }
    }
}

impl Display for AppendError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::TooLarge { set_bytes, set_bytes_max } => {
                write!(out, "a set of {set_bytes} bytes; the log takes {set_bytes_max} at once")
            }
            Self::TooMany { records } => {
                write!(out, "a set of {records} records; a set has at most {}", u16::MAX)
            }
            Self::Unencodable(reason) => write!(out, "the record cannot be written: {reason}"),
            Self::Closed => write!(out, "the log was closed; open it anew"),
            Self::DiskFull(error) => write!(out, "the log's disk is full; make room: {error}"),
            Self::NoSegment(error) => write!(out, "no segment can be made: {error}"),
            Self::Failed(error) => write!(out, "the log failed; open it anew: {error}"),
        }
    }
}

impl Display for CommitError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::DiskFull(error) => write!(out, "the log's disk is full; make room: {error}"),
            Self::NoSegment(error) => write!(out, "no segment can be made: {error}"),
            Self::Failed(error) => write!(out, "the log failed; open it anew: {error}"),
        }
    }
}

impl Display for CheckpointError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::NoBoundary { lsn } => write!(out, "no set of records begins or ends at {lsn}"),
            Self::Unreadable(error) => write!(out, "a checkpoint cannot be here: {error}"),
            Self::NotDurable(error) => write!(out, "the checkpoint is not durable: {error}"),
            Self::Closed => write!(out, "the log was closed; open it anew"),
        }
    }
}

impl Display for TruncateError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Truncated { first } => write!(out, "the log begins at LSN {first} now"),
            Self::NoBoundary { lsn } => write!(out, "no set of records begins or ends at {lsn}"),
            Self::NotDurable(error) => write!(out, "the cut is not durable: {error}"),
            Self::Io(error) => write!(out, "the log's device cannot be read: {error}"),
            Self::Closed => write!(out, "the log was closed; open it anew"),
        }
    }
}

impl Display for ReplayError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Truncated { first } => {
                write!(out, "the log begins at LSN {first} now; go on from there")
            }
            Self::Cut { from } => {
                write!(out, "the log was cut off at LSN {from}; undo what was read from there on")
            }
            Self::Damaged { lsn } => write!(out, "there is no whole set of records at LSN {lsn}"),
            Self::DamagedRecord { lsn, index } => {
                write!(out, "record {index} of the set at LSN {lsn} was written damaged")
            }
            Self::Undecodable { lsn, index, reason } => {
                write!(out, "record {index} of the set at LSN {lsn} is of another kind: {reason}")
            }
            Self::NoKey { lsn, id } => {
                write!(out, "the set at LSN {lsn} is sealed under key {id}, which is not here")
            }
            Self::WrongKey { lsn, id } => {
                write!(out, "key {id} does not open the set at LSN {lsn}")
            }
            Self::NotSealed { lsn } => write!(out, "the set at LSN {lsn} is not sealed"),
            Self::Sealed { lsn } => write!(out, "the set at LSN {lsn} is sealed; the log is not"),
            Self::Compressed { lsn } => {
                write!(out, "the set at LSN {lsn} is compressed; build with the feature `lz4`")
            }
            Self::Failed(error) => write!(out, "the log failed; open it anew: {error}"),
            Self::Io(error) => write!(out, "the log's device cannot be read: {error}"),
        }
    }
}

impl Display for RepairError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Source(error) => write!(out, "the damaged log: {error}"),
            Self::Target(error) => write!(out, "the new log: {error}"),
        }
    }
}

impl Error for RepairError {}
impl Error for CreateError {}
impl Error for OpenError {}
impl Error for AppendError {}
impl Error for CommitError {}
impl Error for CheckpointError {}
impl Error for TruncateError {}
impl Error for ReplayError {}

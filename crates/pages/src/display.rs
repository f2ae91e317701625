//! What is printed of an error: what failed, and what can be done.
//!
//! Promise: one line each.
//! Never: leaves out the error of the machine.

use std::error::Error;
use std::fmt::{Display, Formatter, Result};

use crate::archive::fresh::BrokenChain;
use crate::error::{
    AnalysisError, ArchiveError, BaseFault, CheckpointError, FetchError, FlushError, FollowError,
    FrameFault, LoadError, OpenArchiveError, OpenError, Poisoned, ReadPageError, ReleaseError,
    ReplayError, RereadError, RunFault, RunPart, StageError, SyncError, VersionsError,
    WritePagesError,
};
use crate::page::apply::ApplyFault;
use crate::page::{PageFault, Unfit};
use crate::restart::analysis_state::FoldFault;
use crate::restart::checkpoint::StateFault;
use crate::stream::record::RecordFault;

impl Display for PageFault {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Zeroed => write!(out, "it is all zeros"),
            Self::Check => write!(out, "its check does not match"),
            Self::Number(found) => write!(out, "it is page {found}"),
            Self::Version(found) => write!(out, "it is of version {found}, which is not known"),
            Self::Kind(found) => write!(out, "it is of kind {found}, which is not known"),
        }
    }
}

impl Display for RecordFault {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Short => write!(out, "the bytes end inside a record"),
            Self::UnknownKind(kind) => write!(out, "no record is of kind {kind}"),
            Self::Number => write!(out, "a number in a record cannot be"),
            Self::Length => write!(out, "a record is not as long as it says"),
            Self::Link => write!(out, "a record is about no page, or follows nothing"),
        }
    }
}

impl Display for FrameFault {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Head => write!(out, "the frame does not begin as a store's do"),
            Self::Foreign => write!(out, "the frame belongs to another store; open its own log"),
            Self::OtherVersion { found, known } => {
                write!(out, "the records are of version {found}; this program knows {known}")
            }
            Self::Gap { end, first } => {
                write!(out, "the records from {end} to {first} are missing")
            }
        }
    }
}

impl Display for Unfit {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "a record does not fit its page: {}", self.0)
    }
}

impl Display for ApplyFault {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Chain { found, before } => {
                write!(out, "the page is at {found}, not at {before}; rebuild it from an older one")
            }
            Self::Unfit(unfit) => write!(out, "{unfit}; rebuild the page from an older one"),
        }
    }
}

impl Display for BrokenChain {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "page {} has no record at {}, to which another leads", self.page, self.rsn)
    }
}

impl Display for FoldFault {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Gap { at, found } => write!(out, "the records from {at} to {found} are missing"),
            Self::Page(page) => write!(out, "page {page} changes, and never began"),
            Self::Undo(slot) => write!(out, "transaction {slot} undid other than it did"),
            Self::Cleaned(upto) => write!(out, "pages are clean up to {upto}, where nothing is"),
        }
    }
}

impl Display for StateFault {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Form(form) => write!(out, "a checkpoint of form {form} is not the one wanted"),
            Self::Short => write!(out, "the bytes end inside a checkpoint"),
            Self::Number => write!(out, "a number in a checkpoint cannot be"),
            Self::Length => write!(out, "a checkpoint is shorter than its bytes"),
            Self::Elsewhere { from } => {
                write!(out, "the checkpoint goes on from {from}, elsewhere")
            }
        }
    }
}

impl Display for Poisoned {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "the log failed; open the store anew: {}", self.0)
    }
}

impl Display for StageError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::TooLarge { bytes, bytes_max } => {
                write!(out, "{bytes} bytes of records at once, at most {bytes_max}; put less")
            }
            Self::Poisoned(poisoned) => write!(out, "{poisoned}"),
        }
    }
}

impl Display for FlushError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Full(error) => write!(out, "the log is full, and stays so: {error}"),
            Self::Poisoned(poisoned) => write!(out, "{poisoned}"),
        }
    }
}

impl Display for SyncError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Full(error) => write!(out, "the log is full, and stays so: {error}"),
            Self::Unprepared(error) => write!(out, "the log cannot grow; make space: {error}"),
            Self::Poisoned(poisoned) => write!(out, "{poisoned}"),
        }
    }
}

impl Display for ReleaseError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Full => write!(out, "the log is full to the last byte; sync and try again"),
            Self::Unprepared(error) => write!(out, "the log cannot grow; make space: {error}"),
            Self::Poisoned(poisoned) => write!(out, "{poisoned}"),
        }
    }
}

impl Display for BaseFault {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Missing => write!(out, "it is missing"),
            Self::Unreadable(error) => write!(out, "it cannot be read: {error}"),
            Self::Check => write!(out, "its check does not match"),
            Self::Foreign => write!(out, "it belongs to another store"),
            Self::OtherVersion { found } => {
                write!(out, "it is of version {found}, which is not known")
            }
            Self::State(fault) => write!(out, "{fault}"),
            Self::Ahead { at, archived } => {
                write!(out, "it is of {at}, but runs of the archive are missing from {archived} on")
            }
        }
    }
}

impl Display for LoadError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Damaged([one, other]) => {
                write!(out, "no base serves ({one}; {other}); restore the store from its archive")
            }
            Self::Foreign => write!(out, "the bases belong to another store; open that one"),
            Self::OtherVersion { found, known } => {
                write!(out, "the bases are of version {found}; this program knows {known}")
            }
        }
    }
}

impl Display for ReadPageError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Fault(fault) => write!(out, "the page is not there; rebuild it: {fault}"),
            Self::Io(error) => write!(out, "the page cannot be read; rebuild it: {error}"),
        }
    }
}

impl Display for WritePagesError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Io(error) => write!(out, "pages cannot be written; try again: {error}"),
            Self::Failed(error) => {
                write!(out, "a sync of the page file failed; open it anew: {error}")
            }
        }
    }
}

impl Display for VersionsError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Unknown => write!(out, "the versions of these pages are not known"),
            Self::OtherVersion { found, known } => {
                write!(out, "the versions are of format {found}; this program knows {known}")
            }
            Self::Io(error) => write!(out, "the versions of pages cannot be read: {error}"),
        }
    }
}

impl Display for RunFault {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Damaged(part) => {
                write!(out, "{part} of a run is damaged; take the run from a backup")
            }
            Self::Lost { begin, end } => write!(
                out,
                "no valid run has the records from {begin} to {end}; put it there from a backup"
            ),
            Self::OtherVersion { found, known } => {
                write!(out, "the run is of version {found}; this program knows {known}")
            }
            Self::Io(error) => write!(out, "a run cannot be read: {error}"),
        }
    }
}

impl Display for OpenArchiveError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::MissingRun { from, to } => {
                write!(out, "no run has the records from {from} to {to}; take it from a backup")
            }
            Self::OtherVersion { found, known } => {
                write!(out, "a run is of version {found}; this program knows {known}")
            }
            Self::Io(error) => write!(out, "the archive cannot be opened: {error}"),
        }
    }
}

impl Display for ReplayError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Archive(fault) => write!(out, "{fault}"),
            Self::Broken(fault) => write!(out, "{fault}"),
            Self::Astray(chain) => write!(out, "{chain}"),
            Self::Missing { wanted, found } => {
                write!(out, "the page's records end with {found}, before {wanted}")
            }
        }
    }
}

impl Display for RunPart {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Footer => write!(out, "the footer"),
            Self::State => write!(out, "the state at the beginning"),
            Self::Frames => write!(out, "the list of frames"),
            Self::Index => write!(out, "the index"),
            Self::Bloom => write!(out, "the filter"),
            Self::Block(offset) => write!(out, "the block at byte {offset}"),
            Self::Entry => write!(out, "a record"),
        }
    }
}

impl Display for ArchiveError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Follow(error) => write!(out, "{error}"),
            Self::Sync(error) => write!(out, "{error}"),
            Self::Run(error) => write!(out, "a run was not written: {error}"),
            Self::Reread(fault) => write!(out, "a run does not read as it was written: {fault}"),
            Self::Base(error) => write!(out, "a base was not written: {error}"),
            Self::Release(error) => write!(out, "{error}"),
            Self::Log(error) => write!(out, "{error}"),
        }
    }
}

impl Display for FetchError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::NoSuchPage(page) => write!(out, "there is no page {page}"),
            Self::Lost { page, why } => write!(out, "page {page} is lost: {why}"),
            Self::Archive { page, fault } => write!(out, "page {page} needs a run: {fault}"),
            Self::OtherVersion { found } => {
                write!(out, "the pages are of version {found}, which is not known")
            }
            Self::Follow(error) => write!(out, "{error}"),
        }
    }
}

impl Display for OpenError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Archive(error) => write!(out, "{error}"),
            Self::Base(error) => write!(out, "{error}"),
            Self::Log(error) => write!(out, "{error}"),
            Self::Io(error) => write!(out, "the pages cannot be opened: {error}"),
        }
    }
}

impl Error for ArchiveError {}

impl Error for FetchError {}

impl Error for OpenError {}

impl Error for BaseFault {}

impl Error for LoadError {}

impl Error for Poisoned {}

impl Error for StageError {}

impl Error for FlushError {}

impl Error for SyncError {}

impl Error for ReleaseError {}

impl Error for PageFault {}

impl Error for RecordFault {}

impl Error for FrameFault {}

impl Error for Unfit {}

impl Error for ApplyFault {}

impl Error for FoldFault {}

impl Error for StateFault {}

impl Error for BrokenChain {}

impl Error for ReadPageError {}

impl Error for WritePagesError {}

impl Error for VersionsError {}

impl Error for RunFault {}

impl Error for OpenArchiveError {}

impl Error for ReplayError {}

impl Display for AnalysisError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Log(error) => write!(out, "the log cannot be read: {error}"),
            Self::Frame { lsn, fault } => write!(out, "frame at {lsn}: {fault}"),
            Self::Record { rsn, fault } => write!(out, "record at {rsn}: {fault}"),
            Self::Checkpoint { rsn, fault } => write!(out, "checkpoint at {rsn}: {fault}"),
            Self::Fold { rsn, fault } => write!(out, "record at {rsn}: {fault}"),
            Self::Older { end, need } => write!(
                out,
                "the log is an older copy: it has records up to {end}, and there are more to {need}"
            ),
            Self::Gap { have, need } => {
                write!(out, "the log has records at {have}, and they are needed at {need}")
            }
        }
    }
}

impl Error for AnalysisError {}

impl Display for FollowError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Record(fault) => write!(out, "the stream cannot be followed: {fault}"),
            Self::Fold(fault) => write!(out, "the stream cannot be followed: {fault}"),
        }
    }
}

impl Display for CheckpointError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Follow(error) => write!(out, "{error}"),
            Self::Stage(error) => write!(out, "{error}"),
            Self::Reread(error) => write!(out, "{error}"),
        }
    }
}

impl Display for RereadError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Released { from } => write!(out, "the records from {from} on are released"),
            Self::Log(error) => write!(out, "the log cannot be read: {error}"),
            Self::Frame(fault) => write!(out, "the log cannot be read again: {fault}"),
            Self::Record(fault) => write!(out, "the log cannot be read again: {fault}"),
            Self::Fold(fault) => write!(out, "the log cannot be read again: {fault}"),
            Self::Stage(error) => write!(out, "{error}"),
        }
    }
}

impl Error for RereadError {}

impl Error for CheckpointError {}

impl Error for FollowError {}

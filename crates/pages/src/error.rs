//! What can go wrong, and what the caller can do about it.
//!
//! Promise: one enum per public operation; damage is named.
//! Never: hides an I/O error behind a summary.

mod past;
mod upkeep;

use std::io;
use std::sync::Arc;

use holdfast_log::{Lsn, ReadError};

use crate::archive::fresh::BrokenChain;
use crate::page::PageFault;
use crate::page::apply::ApplyFault;
use crate::restart::analysis_state::FoldFault;
use crate::restart::checkpoint::StateFault;
use crate::stream::append_buffer::TooLarge;
use crate::stream::record::RecordFault;
use crate::stream::rsn::{PageNumber, Rsn};

pub use past::{BackupError, RestoreError};
pub use upkeep::{CleanError, CompareError, MergeError};

/// The log failed. Final: every later call says the same. Open the store anew.
#[derive(Clone, Debug)]
pub struct Poisoned(pub Arc<io::Error>);

/// Why a group of records was not put.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StageError {
    /// Longer than a frame of the log. Put less at once.
    TooLarge {
        /// What that would be, in bytes.
        bytes: u64,
        /// The most there can be.
        bytes_max: u64,
    },
    /// See [`Poisoned`].
    Poisoned(Poisoned),
}

/// Why records are not stable.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FlushError {
    /// The log is full, and whoever makes room could not, for this reason. Nothing is lost: see to
    /// that, then flush again.
    Full(Arc<io::Error>),
    /// See [`Poisoned`].
    Poisoned(Poisoned),
}

/// Why records are not durable.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SyncError {
    /// As [`FlushError::Full`].
    Full(Arc<io::Error>),
    /// The log has no file to write to; its disk is full, most often. Nothing is lost: make space,
    /// then sync again.
    Unprepared(Arc<io::Error>),
    /// See [`Poisoned`].
    Poisoned(Poisoned),
}

/// Why frames of the log were not given back. They are still there, but for a mark that may say
/// otherwise after a crash.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReleaseError {
    /// There is no room even to say so. Make the stream durable, then try again.
    Full,
    /// As [`SyncError::Unprepared`]: make space, then try again.
    Unprepared(Arc<io::Error>),
    /// See [`Poisoned`].
    Poisoned(Poisoned),
}

impl From<TooLarge> for StageError {
    fn from(TooLarge { bytes, bytes_max }: TooLarge) -> StageError {
        StageError::TooLarge { bytes, bytes_max }
    }
}

impl From<Poisoned> for StageError {
    fn from(poisoned: Poisoned) -> StageError {
        StageError::Poisoned(poisoned)
    }
}

impl From<Poisoned> for FlushError {
    fn from(poisoned: Poisoned) -> FlushError {
        FlushError::Poisoned(poisoned)
    }
}

impl From<FlushError> for SyncError {
    fn from(error: FlushError) -> SyncError {
        match error {
            FlushError::Full(error) => SyncError::Full(error),
            FlushError::Poisoned(poisoned) => SyncError::Poisoned(poisoned),
        }
    }
}

impl From<Poisoned> for ReleaseError {
    fn from(poisoned: Poisoned) -> ReleaseError {
        ReleaseError::Poisoned(poisoned)
    }
}

impl From<CommitFault> for SyncError {
    fn from(fault: CommitFault) -> SyncError {
        match fault {
            CommitFault::Unprepared(error) => SyncError::Unprepared(error),
            CommitFault::Poisoned(poisoned) => SyncError::Poisoned(poisoned),
        }
    }
}

impl From<CommitFault> for ReleaseError {
    fn from(fault: CommitFault) -> ReleaseError {
        match fault {
            CommitFault::Unprepared(error) => ReleaseError::Unprepared(error),
            CommitFault::Poisoned(poisoned) => ReleaseError::Poisoned(poisoned),
        }
    }
}

/// What a commit of the log can end in.
pub(crate) enum CommitFault {
    Unprepared(Arc<io::Error>),
    Poisoned(Poisoned),
}

/// Why the payload of a frame does not hold the records that were expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameFault {
    /// It does not begin as one of ours does: the log is not the log of a store.
    Head,
    /// It is another store's. Open the log of this one.
    Foreign,
    /// It is of another version: open the store with that one.
    OtherVersion {
        /// Version found.
        found: u16,
        /// Version this program knows.
        known: u16,
    },
    /// Frames are missing before it.
    Gap {
        /// Where the one before ended.
        end: Rsn,
        /// Where this one begins.
        first: Rsn,
    },
}

/// Why one of the two bases does not serve.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BaseFault {
    /// There is no such file.
    Missing,
    /// The machine does not give it to us.
    Unreadable(Arc<io::Error>),
    /// Its check does not match, or it is no base.
    Check,
    /// It is another store's.
    Foreign,
    /// It is of another version.
    OtherVersion {
        /// Version found.
        found: u16,
    },
    /// It is whole, but what it says cannot be.
    State(StateFault),
    /// It goes on behind the archive, whose newest runs are missing or damaged: put them there from
    /// a backup.
    Ahead {
        /// Up to where it is.
        at: Rsn,
        /// Where the archive ends.
        archived: Rsn,
    },
}

/// Why there is no base to begin with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// Neither serves, for these reasons. Restore the store from its archive.
    Damaged([BaseFault; 2]),
    /// They are another store's. Open that one, or bring this one's.
    Foreign,
    /// They are of another version: open the store with that one.
    OtherVersion {
        /// Version found.
        found: u16,
        /// Version this program knows.
        known: u16,
    },
}

/// Why a page was not read from the page file.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadPageError {
    /// What is there is not this page. Rebuild it from an older one, or from nothing.
    Fault(PageFault),
    /// The device did not say what is there. Rebuild the page; replace the file if that goes on.
    Io(io::Error),
}

/// Why pages are not written, or not durable.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WritePagesError {
    /// The write failed, for want of space maybe. See to that, then write the same pages again.
    Io(Arc<io::Error>),
    /// A sync failed, now or before. What was written since the last one that did not may be lost
    /// although it can still be read: open the file anew and write all of it again.
    Failed(Arc<io::Error>),
}

/// Why it is not known which record a page of the page file has got to.
#[derive(Debug)]
#[non_exhaustive]
pub enum VersionsError {
    /// The block was never written, or is damaged. The archive knows.
    Unknown,
    /// It is of another version: open the store with that one.
    OtherVersion {
        /// Version found.
        found: u16,
        /// Version this program knows.
        known: u16,
    },
    /// The device did not say. The archive knows.
    Io(io::Error),
}

/// Why a run of the archive does not say what is in it.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunFault {
    /// This part of it is damaged. Take the run from a backup; until then the records in that part
    /// are there only if the runs that it was merged from are.
    Damaged(RunPart),
    /// There is no valid run with these records. Put it there from a backup.
    Lost {
        /// Where the first of them stands.
        begin: Rsn,
        /// Where the next one stands that is there.
        end: Rsn,
    },
    /// It is of another version: open the store with that one.
    OtherVersion {
        /// Version found.
        found: u16,
        /// Version this program knows.
        known: u16,
    },
    /// The device did not say what is there, or there is no such file.
    Io(io::Error),
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunPart {
    /// What says where everything is.
    Footer,
    /// What a fold of all records before it gives.
    State,
    /// The frames that its records came in.
    Frames,
    /// What says which block has which pages.
    Index,
    /// What says which pages it surely does not have.
    Bloom,
    /// The block of records at this offset in the file.
    Block(u64),
    /// A record of a block whose check matches.
    Entry,
}

/// Why an archive was not opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenArchiveError {
    /// There is no valid run with these records. Put the run from a backup into the directory.
    MissingRun {
        /// Where the first of them stands.
        from: Rsn,
        /// Where the next one stands that is there.
        to: Rsn,
    },
    /// A run is of another version: open the store with that one.
    OtherVersion {
        /// Version found.
        found: u16,
        /// Version this program knows.
        known: u16,
    },
    /// The directory could not be read or changed. Open again.
    Io(io::Error),
}

/// Why a page could not be rebuilt.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// A run does not say what it has of the page. Rebuild the page from a newer one, if there is
    /// one; see [`RunFault`].
    Archive(RunFault),
    /// A record does not follow what the page was built from. Rebuild it from an older one, or from
    /// nothing; if it was built from that, records of it are lost.
    Broken(ApplyFault),
    /// The page has no record where one of its records should stand. As [`ReplayError::Broken`].
    Astray(BrokenChain),
    /// The page's records end before the one that was asked for. As [`ReplayError::Broken`].
    Missing {
        /// The record.
        wanted: Rsn,
        /// The last one that is there.
        found: Rsn,
    },
}

/// Why the log does not tell what a restart has to know. Nothing has changed. But for
/// [`AnalysisError::Log`] it is not the log that this store wrote: bring that, or restore the store
/// from its archive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnalysisError {
    /// The log could not be read. Open it anew.
    Log(ReadError),
    /// A frame is not the one that should be here.
    Frame {
        /// Where it lies.
        lsn: Lsn,
        /// What is wrong with it.
        fault: FrameFault,
    },
    /// What a frame holds is no record.
    Record {
        /// Where it should stand.
        rsn: Rsn,
        /// What is wrong with it.
        fault: RecordFault,
    },
    /// A checkpoint is none.
    Checkpoint {
        /// Where its record stands.
        rsn: Rsn,
        /// What is wrong with it.
        fault: StateFault,
    },
    /// A record does not follow from those before it.
    Fold {
        /// Where it stands.
        rsn: Rsn,
        /// What is wrong with it.
        fault: FoldFault,
    },
    /// The log ends before the archive or a base does: it is an older copy, and what the newer one
    /// had behind that may be nowhere else.
    Older {
        /// Where its records end.
        end: Rsn,
        /// Where they should at the earliest.
        need: Rsn,
    },
    /// Records are missing that neither the archive nor a base has.
    Gap {
        /// Where the log's records begin, or end.
        have: Rsn,
        /// Where they should at the latest, or the earliest.
        need: Rsn,
    },
}

/// Why the stream was not followed: what was put into it is not what a store puts there. Open the
/// store anew; if that says the same, restore it from its archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FollowError {
    /// It is no record.
    Record(RecordFault),
    /// It does not follow from those before it.
    Fold(FoldFault),
}

/// Why there is no checkpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The stream was not followed.
    Follow(FollowError),
    /// The record was not put.
    Stage(StageError),
    /// The log was not read again, or the record not put.
    Reread(RereadError),
}

impl From<RereadError> for CheckpointError {
    fn from(error: RereadError) -> CheckpointError {
        CheckpointError::Reread(error)
    }
}

impl From<FollowError> for CheckpointError {
    fn from(error: FollowError) -> CheckpointError {
        CheckpointError::Follow(error)
    }
}

impl From<StageError> for CheckpointError {
    fn from(error: StageError) -> CheckpointError {
        CheckpointError::Stage(error)
    }
}

/// Why there is no checkpoint by reading the log again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RereadError {
    /// The records from here on were released before they were read. Open the store anew.
    Released {
        /// Where the last checkpoint ended.
        from: Rsn,
    },
    /// The log could not be read. Try again, or open it anew if it says so.
    Log(ReadError),
    /// What was read is not what was put. Open the store anew; if that says the same, restore it
    /// from its archive.
    Frame(FrameFault),
    /// As [`RereadError::Frame`].
    Record(RecordFault),
    /// As [`RereadError::Frame`].
    Fold(FoldFault),
    /// The record was not put.
    Stage(StageError),
}

impl From<StageError> for RereadError {
    fn from(error: StageError) -> RereadError {
        RereadError::Stage(error)
    }
}

/// Why nothing was archived, or the log keeps what nobody needs. What was archived before still is.
#[derive(Debug)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The stream was not followed.
    Follow(FollowError),
    /// The records are not durable.
    Sync(SyncError),
    /// The run was not written, for want of space maybe. See to that, then try again.
    Run(io::Error),
    /// The run does not read as it was written. Try again.
    Reread(RunFault),
    /// No base was written. As [`ArchiveError::Run`].
    Base(io::Error),
    /// The log did not take back what nobody needs.
    Release(ReleaseError),
    /// The log was not read again, by whoever makes checkpoints so.
    Log(RereadError),
}

impl From<RereadError> for ArchiveError {
    fn from(error: RereadError) -> ArchiveError {
        ArchiveError::Log(error)
    }
}

impl From<FollowError> for ArchiveError {
    fn from(error: FollowError) -> ArchiveError {
        ArchiveError::Follow(error)
    }
}

impl From<SyncError> for ArchiveError {
    fn from(error: SyncError) -> ArchiveError {
        ArchiveError::Sync(error)
    }
}

impl From<ReleaseError> for ArchiveError {
    fn from(error: ReleaseError) -> ArchiveError {
        ArchiveError::Release(error)
    }
}

/// Why a page cannot be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum FetchError {
    /// No record is about a page of this number. Whoever named it is damaged.
    NoSuchPage(PageNumber),
    /// Its image does not serve, and its records do not lead to it either: the page is lost. Put
    /// the archive's runs there from a backup.
    Lost {
        /// The page.
        page: PageNumber,
        /// What its records lack.
        why: ReplayError,
    },
    /// It needs records of a run that does not give them. Put that there from a backup.
    Archive {
        /// The page.
        page: PageNumber,
        /// What is wrong with the run.
        fault: RunFault,
    },
    /// The device has pages of another version: open the store with that one.
    OtherVersion {
        /// Version found.
        found: u16,
    },
    /// The stream was not followed.
    Follow(FollowError),
}

impl FetchError {
    pub(crate) fn of(page: PageNumber, error: ReplayError) -> FetchError {
        match error {
            ReplayError::Archive(fault) => FetchError::Archive { page, fault },
            why => FetchError::Lost { page, why },
        }
    }
}

impl From<FollowError> for FetchError {
    fn from(error: FollowError) -> FetchError {
        FetchError::Follow(error)
    }
}

/// Why the pages of a store were not opened. Nothing has changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The archive was not opened.
    Archive(OpenArchiveError),
    /// There is no base.
    Base(LoadError),
    /// The log does not tell what has to be known.
    Log(AnalysisError),
    /// The machine does not give us a file. Open again.
    Io(io::Error),
}

impl From<OpenArchiveError> for OpenError {
    fn from(error: OpenArchiveError) -> OpenError {
        OpenError::Archive(error)
    }
}

impl From<LoadError> for OpenError {
    fn from(error: LoadError) -> OpenError {
        OpenError::Base(error)
    }
}

impl From<AnalysisError> for OpenError {
    fn from(error: AnalysisError) -> OpenError {
        OpenError::Log(error)
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Io(error)
    }
}

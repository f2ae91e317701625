//! What can go wrong when a store is copied, or made as it was, and what is printed of it.
//!
//! Promise: as `error` and `display`.
//! Never: is needed by anybody who only reads and writes pages.

use std::error::Error;
use std::fmt::{Display, Formatter, Result};
use std::io;

use super::{ArchiveError, FetchError, OpenArchiveError, RunFault, WritePagesError};
use crate::backup::moment::Moment;
use crate::restart::analysis_state::FoldFault;
use crate::restart::checkpoint::StateFault;
use crate::stream::rsn::PageNumber;

/// Why the pages of a store were not made as they were at a moment.
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// The archive has no records.
    Nothing,
    /// The moment is not one that can be restored. Name one between these two.
    Outside {
        /// The oldest one.
        oldest: Moment,
        /// The newest one.
        newest: Moment,
    },
    /// There is a store already. Restore to where none is.
    NotEmpty,
    /// What says what a backup has is damaged, or another store's. Use another backup.
    Manifest,
    /// The backup is of another version: use it with that one.
    OtherVersion {
        /// Version found.
        found: u16,
        /// Version this program knows.
        known: u16,
    },
    /// The archive does not serve.
    Open(OpenArchiveError),
    /// A run does not say what is in it; see [`RunFault`].
    Archive(RunFault),
    /// The state that a run begins with is none. Choose a moment before it, or behind the next.
    State(StateFault),
    /// A record does not follow from those before it. As [`RestoreError::State`].
    Fold(FoldFault),
    /// The machine did not read or write; make space, maybe, and try again.
    Io(io::Error),
    /// As [`RestoreError::Io`].
    Pages(WritePagesError),
}

/// Why there is no backup, or it was not brought forward. If there was one before, there still is.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackupError {
    /// There is a backup already. Bring it forward, or choose another place.
    NotEmpty,
    /// There is none to be brought forward.
    NoBackup,
    /// Not all records are archived.
    Unarchived(ArchiveError),
    /// A page cannot be had.
    Fetch(FetchError),
    /// A page of the backup cannot be brought forward, and not be built from the archive.
    Lost(PageNumber),
    /// The archive or the backup does not serve, or the backup cannot be written.
    Restore(RestoreError),
}

impl From<io::Error> for RestoreError {
    fn from(error: io::Error) -> RestoreError {
        RestoreError::Io(error)
    }
}

impl From<RunFault> for RestoreError {
    fn from(fault: RunFault) -> RestoreError {
        RestoreError::Archive(fault)
    }
}

impl From<OpenArchiveError> for RestoreError {
    fn from(error: OpenArchiveError) -> RestoreError {
        RestoreError::Open(error)
    }
}

impl From<WritePagesError> for RestoreError {
    fn from(error: WritePagesError) -> RestoreError {
        RestoreError::Pages(error)
    }
}

impl From<ArchiveError> for BackupError {
    fn from(error: ArchiveError) -> BackupError {
        BackupError::Unarchived(error)
    }
}

impl From<FetchError> for BackupError {
    fn from(error: FetchError) -> BackupError {
        BackupError::Fetch(error)
    }
}

impl<Fault: Into<RestoreError>> From<Fault> for BackupError {
    fn from(fault: Fault) -> BackupError {
        BackupError::Restore(fault.into())
    }
}

impl Display for RestoreError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Nothing => write!(out, "the archive has no records"),
            Self::Outside { oldest, newest } => write!(
                out,
                "the archive goes from record {} (log position {}) to {} ({}); choose between",
                oldest.rsn, oldest.lsn, newest.rsn, newest.lsn
            ),
            Self::NotEmpty => write!(out, "there is a store already; restore to another place"),
            Self::Manifest => write!(out, "the manifest is damaged; use another backup"),
            Self::OtherVersion { found, known } => {
                write!(out, "the backup is of version {found}; this program knows {known}")
            }
            Self::Open(error) => write!(out, "{error}"),
            Self::Archive(fault) => write!(out, "{fault}"),
            Self::State(fault) => write!(out, "the state of a run is none: {fault}"),
            Self::Fold(fault) => write!(out, "the archive does not follow: {fault}"),
            Self::Io(error) => write!(out, "restore failed; make space and try again: {error}"),
            Self::Pages(error) => write!(out, "{error}"),
        }
    }
}

impl Display for BackupError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::NotEmpty => write!(out, "there is a backup already; bring it forward"),
            Self::NoBackup => write!(out, "there is no backup to be brought forward"),
            Self::Unarchived(error) => write!(out, "{error}"),
            Self::Fetch(error) => write!(out, "{error}"),
            Self::Lost(page) => write!(out, "page {page} of the backup cannot be built"),
            Self::Restore(error) => write!(out, "{error}"),
        }
    }
}

impl Error for RestoreError {}

impl Error for BackupError {}

//! What can go wrong while pages and archive are kept in order, and what is printed of it.
//!
//! Promise: as `error` and `display`.
//! Never: is needed by anybody who only reads and writes pages.

use std::error::Error;
use std::fmt::{Display, Formatter, Result};
use std::io;

use super::{ArchiveError, FetchError, RunFault, StageError, WritePagesError};
use crate::stream::rsn::Rsn;

/// Why the page file was not brought to where the archive is. What was written is right; whoever
/// goes on begins anew, and writes all of it again.
#[derive(Debug)]
#[non_exhaustive]
pub enum CleanError {
    /// A run that is needed does not say what is in it; see [`RunFault`].
    Archive(RunFault),
    /// Pages were not written, or not made durable. For want of space: make some. After a failed
    /// sync the file has been opened anew.
    Pages(WritePagesError),
    /// What pages have got to was not written, or not made durable. As [`CleanError::Pages`].
    Versions(io::Error),
    /// The file of versions is of another version: open the store with that one.
    OtherVersion {
        /// Version found.
        found: u16,
    },
    /// A file that failed or was lost could not be opened anew, or what tells of that could not be
    /// written or removed.
    Reopen(io::Error),
    /// It was done, and could not be said.
    Stage(StageError),
    /// A page that is in no frame cannot be had. Only who cleans from frames asks for it.
    Fetch(FetchError),
    /// What is in frames is not archived, so it must not be written. As [`CleanError::Fetch`].
    NotArchived(ArchiveError),
}

impl From<RunFault> for CleanError {
    fn from(fault: RunFault) -> CleanError {
        CleanError::Archive(fault)
    }
}

impl From<WritePagesError> for CleanError {
    fn from(error: WritePagesError) -> CleanError {
        CleanError::Pages(error)
    }
}

impl From<StageError> for CleanError {
    fn from(error: StageError) -> CleanError {
        CleanError::Stage(error)
    }
}

/// Why runs were not merged. They are still there.
#[derive(Debug)]
#[non_exhaustive]
pub enum MergeError {
    /// One of them does not say what is in it; see [`RunFault`].
    Archive(RunFault),
    /// The merged run was not written, for want of space maybe, or something could not be removed.
    /// See to that, then try again.
    Write(io::Error),
    /// The merged run did not read as it was written, and is removed. Try again.
    Reread(RunFault),
}

impl From<RunFault> for MergeError {
    fn from(fault: RunFault) -> MergeError {
        MergeError::Archive(fault)
    }
}

/// Why a page in memory is not known to be what its records make of it.
#[derive(Debug)]
#[non_exhaustive]
pub enum CompareError {
    /// It is not. Throw it away and load it anew.
    Differs {
        /// The first byte that is not as it should be.
        at: usize,
    },
    /// It is older than the archive knows of.
    Older {
        /// Its newest record there.
        newest: Rsn,
    },
    /// Its records cannot be had, or do not lead there.
    Fetch(FetchError),
}

impl From<FetchError> for CompareError {
    fn from(error: FetchError) -> CompareError {
        CompareError::Fetch(error)
    }
}

impl Display for CleanError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Archive(fault) => write!(out, "pages cannot be cleaned: {fault}"),
            Self::Pages(error) => write!(out, "{error}"),
            Self::Versions(error) => {
                write!(out, "versions cannot be written; make space and try again: {error}")
            }
            Self::OtherVersion { found } => {
                write!(out, "the versions are of format {found}, which is not known")
            }
            Self::Reopen(error) => write!(out, "pages or versions cannot be opened: {error}"),
            Self::Stage(error) => write!(out, "{error}"),
            Self::Fetch(error) => write!(out, "a page cannot be cleaned: {error}"),
            Self::NotArchived(error) => write!(out, "pages cannot be cleaned yet: {error}"),
        }
    }
}

impl Error for CleanError {}

impl Display for MergeError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Archive(fault) => write!(out, "runs cannot be merged: {fault}"),
            Self::Write(error) => {
                write!(out, "runs cannot be merged; make space and try again: {error}")
            }
            Self::Reread(fault) => write!(out, "a merged run is not as it was written: {fault}"),
        }
    }
}

impl Error for MergeError {}

impl Display for CompareError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Differs { at } => {
                write!(out, "byte {at} of the page is not what its records say; load it anew")
            }
            Self::Older { newest } => {
                write!(out, "the page is older than record {newest}, which the archive has of it")
            }
            Self::Fetch(error) => write!(out, "{error}"),
        }
    }
}

impl Error for CompareError {}

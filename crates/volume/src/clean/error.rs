//! Why what the log has does not come to the home.
//!
//! Promise: says who refused what, in the words of the log or the system.
//! Never: takes the log's fault for the home's.

use std::io;
use std::path::{Path, PathBuf};

use holdfast_log::{CommitError, Lsn, ReadError, WordError};
use holdfast_memory::MEMORY_DAMAGED;

use crate::record::RecordFault;

/// What the home refused to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act {
    /// Make a file, directory or other node.
    Make,
    /// Give a second name.
    Link,
    /// Remove a name.
    Remove,
    /// Rename.
    Rename,
    /// Open a file.
    Open,
    /// Write a file.
    Write,
    /// Change attributes.
    Change,
    /// Make durable.
    Sync,
}

/// Why a step failed. The log still has everything: mend the cause and step again.
#[derive(Debug)]
#[non_exhaustive]
pub enum CleanError {
    /// The home failed.
    Home {
        /// What was tried.
        act: Act,
        /// On which path below the home.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The log failed. Final.
    Log(CommitError),
    /// The log did not give back what it has.
    Read(ReadError),
    /// The log did not keep, or tell, how far the home is.
    Word(WordError),
    /// A frame holds what no version of Holdfast writes.
    Record(Lsn, RecordFault),
    /// What was put aside, beside the log, cannot be read or written.
    Aside(io::Error),
}

impl CleanError {
    pub(crate) fn home(act: Act, path: &Path, error: io::Error) -> CleanError {
        CleanError::Home { act, path: path.to_path_buf(), error }
    }

    /// The error number behind it, for a status word; 0 if the log is to blame, which says so
    /// itself.
    pub(crate) fn errno(&self) -> u64 {
        match self {
            CleanError::Log(_) => 0,
            CleanError::Home { error, .. } => {
                error.raw_os_error().unwrap_or(5).unsigned_abs().into()
            }
            CleanError::Read(ReadError::Damaged(_)) => MEMORY_DAMAGED.unsigned_abs().into(),
            _ => 5,
        }
    }
}

impl std::fmt::Display for CleanError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CleanError::Home { act, path, error } => {
                write!(out, "{act:?} of {} in the home failed: {error}", path.display())
            }
            CleanError::Log(error) => write!(out, "the log failed: {error}"),
            CleanError::Read(error) => write!(out, "the log cannot be read: {error}"),
            CleanError::Word(error) => write!(out, "{error}"),
            CleanError::Aside(error) => {
                write!(out, "what is put aside cannot be read or written: {error}")
            }
            CleanError::Record(lsn, fault) => {
                write!(out, "the frame at LSN {lsn} holds no known record: {fault:?}")
            }
        }
    }
}

impl std::error::Error for CleanError {}

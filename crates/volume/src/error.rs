//! Why a volume cannot be opened, and why a change is not logged.
//!
//! Promise: tells whoever asked what he can do: mend something, wait for something, or nothing.
//! Never: means that a change has been logged.

use std::io;

use holdfast_io::tree::Errno;
use holdfast_log::{Lsn, NoteError, OpenError};

use crate::clean::error::CleanError;
use crate::record::RecordFault;

/// Why a volume cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum VolumeError {
    /// The log: see there.
    Log(OpenError),
    /// The log or the home failed while what was left was applied. Nothing is lost; mend the disk
    /// and open again.
    Clean(CleanError),
    /// The home cannot be read. Nothing is lost; mend the disk and open again.
    Home(Errno),
    /// The home's file system does not keep what programs would be told that they have. Nothing is
    /// lost; open with a home on one that does.
    Unfit(String),
    /// The notes of names cannot be read, so the kernel's node numbers mean nothing any more.
    /// Nothing is lost: unmount, which makes the kernel forget them, and attach again.
    Names(NoteError),
    /// A frame holds what no version of Holdfast writes, at this LSN.
    Record(Lsn, RecordFault),
}

impl std::fmt::Display for VolumeError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            VolumeError::Log(error) => write!(out, "the log cannot be opened: {error}"),
            VolumeError::Clean(error) => write!(out, "what the log has cannot be applied: {error}"),
            VolumeError::Home(errno) => {
                write!(out, "the home cannot be read: {}", io::Error::from_raw_os_error(errno.0))
            }
            VolumeError::Unfit(why) => write!(out, "the home cannot be a volume's: {why}"),
            VolumeError::Names(error) => {
                write!(out, "the names are lost ({error}); unmount and mount again")
            }
            VolumeError::Record(lsn, fault) => {
                write!(out, "the frame at LSN {} holds no known record: {fault:?}", lsn.0)
            }
        }
    }
}

impl std::error::Error for VolumeError {}

impl From<CleanError> for VolumeError {
    fn from(error: CleanError) -> VolumeError {
        VolumeError::Clean(error)
    }
}

/// Why an attempt to log a change ended without one.
pub(crate) enum Stop {
    /// The change is refused.
    Refused(Errno),
    /// The log has no room for this many bytes now.
    NoRoom(u64),
    /// The home may have no room, which it cannot tell before it has what waits for it.
    NoSpace,
    /// As many files of the home are open for writing as may be, or as the user may have.
    NoFiles,
    /// The log may have room, but others are to have it before this user.
    NoTurn,
    /// As much waits for the home that is no bytes of the log as may, or as the user may have.
    NoWork,
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Stop {
        Stop::Refused(errno)
    }
}

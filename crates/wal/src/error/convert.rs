//! Errors of the layers below, in the words of this one.
//!
//! Promise: nothing is lost on the way: names, positions and the error of the machine come along.
//! Never: decides what to do about them.

use std::io;
use std::sync::Arc;

use holdfast_log::{CursorError, FileFault};

use super::{
    AppendError, CheckpointError, CommitError, CreateError, OpenError, RepairError, ReplayError,
    TruncateError,
};
use crate::place::PlaceError;

impl From<PlaceError> for CreateError {
    fn from(error: PlaceError) -> CreateError {
        match error {
            PlaceError::InUse => CreateError::InUse,
            PlaceError::Missing(error) | PlaceError::Io(error) => CreateError::Io(error),
        }
    }
}

impl From<holdfast_log::CreateError> for CreateError {
    fn from(error: holdfast_log::CreateError) -> CreateError {
        use holdfast_log::CreateError as Below;
        match error {
            Below::Config(fault) => CreateError::Options(fault),
            Below::Exists => CreateError::Exists,
            Below::NotEmpty { name } => CreateError::NotEmpty { name },
            Below::Used { name } => CreateError::Used { name },
            Below::Io(error) => CreateError::Io(error),
            error => CreateError::Io(io::Error::other(error)),
        }
    }
}

impl From<PlaceError> for OpenError {
    fn from(error: PlaceError) -> OpenError {
        match error {
            PlaceError::InUse => OpenError::InUse,
            PlaceError::Missing(_) => OpenError::NoLog,
            PlaceError::Io(error) => OpenError::Io(error),
        }
    }
}

impl From<holdfast_log::OpenError> for OpenError {
    fn from(error: holdfast_log::OpenError) -> OpenError {
        use holdfast_log::OpenError as Below;
        match error {
            Below::NoLog => OpenError::NoLog,
            Below::OtherVersion { found, known } => OpenError::OtherVersion { found, known },
            Below::File { name, fault: FileFault::Foreign } => OpenError::ForeignFile { name },
            Below::File { name, fault } => OpenError::File { name, fault },
            Below::MissingSegment { name } => OpenError::MissingSegment { name },
            Below::Corrupt { from, to } => OpenError::Corrupt { from, to },
            Below::InUse => OpenError::InUse,
            Below::Io(error) => OpenError::Io(error),
            // The rest speaks of regions that survive, and this one is always new.
            error => OpenError::Io(io::Error::other(error)),
        }
    }
}

impl From<holdfast_log::RepairError> for RepairError {
    fn from(error: holdfast_log::RepairError) -> RepairError {
        use holdfast_log::RepairError as Below;
        match error {
            Below::Source(error) => RepairError::Source(error.into()),
            Below::Target(error) => RepairError::Target(error.into()),
            error => RepairError::Source(OpenError::Io(io::Error::other(error))),
        }
    }
}

impl From<holdfast_log::CommitError> for OpenError {
    fn from(error: holdfast_log::CommitError) -> OpenError {
        use holdfast_log::CommitError as Below;
        match error {
            Below::Poisoned(error) | Below::Unprepared(error) | Below::Unreachable(error) => {
                OpenError::Io(io::Error::new(error.kind(), error))
            }
            error => OpenError::Io(io::Error::other(error)),
        }
    }
}

impl From<holdfast_log::AppendError> for AppendError {
    fn from(error: holdfast_log::AppendError) -> AppendError {
        use holdfast_log::AppendError as Below;
        match error {
            Below::TooLarge { payload_bytes, payload_bytes_max } => {
                AppendError::TooLarge { set_bytes: payload_bytes, set_bytes_max: payload_bytes_max }
            }
            Below::Poisoned(error) | Below::Unreachable(error) => AppendError::Failed(error),
            error => AppendError::Failed(Arc::new(io::Error::other(error))),
        }
    }
}

impl From<CommitError> for AppendError {
    fn from(error: CommitError) -> AppendError {
        match error {
            CommitError::DiskFull(error) => AppendError::DiskFull(error),
            CommitError::NoSegment(error) => AppendError::NoSegment(error),
            CommitError::Failed(error) => AppendError::Failed(error),
        }
    }
}

impl From<holdfast_log::CommitError> for CommitError {
    fn from(error: holdfast_log::CommitError) -> CommitError {
        use holdfast_log::CommitError as Below;
        match error {
            Below::Unprepared(error) if is_full(&error) => CommitError::DiskFull(error),
            Below::Unprepared(error) => CommitError::NoSegment(error),
            Below::Poisoned(error) | Below::Unreachable(error) => CommitError::Failed(error),
            error => CommitError::Failed(Arc::new(io::Error::other(error))),
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl From<CommitError> for CheckpointError {
    fn from(error: CommitError) -> CheckpointError {
        CheckpointError::NotDurable(error)
    }
}

impl From<holdfast_log::TruncateError> for TruncateError {
    fn from(error: holdfast_log::TruncateError) -> TruncateError {
        use holdfast_log::TruncateError as Below;
        match error {
            Below::Truncated { first } => TruncateError::Truncated { first },
            Below::NoBoundary { lsn } => TruncateError::NoBoundary { lsn },
            Below::NotDurable(error) => TruncateError::NotDurable(error.into()),
            Below::Io(error) => TruncateError::Io(error),
            error => TruncateError::Io(io::Error::other(error)),
        }
    }
}

impl From<CursorError> for ReplayError {
    fn from(error: CursorError) -> ReplayError {
        match error {
            CursorError::Truncated { first } => ReplayError::Truncated { first },
            CursorError::Cut { from } => ReplayError::Cut { from },
            CursorError::Damaged { at: lsn } => ReplayError::Damaged { lsn },
            CursorError::Io(error) => ReplayError::Io(error),
            error => ReplayError::Io(io::Error::other(error)),
        }
    }
}

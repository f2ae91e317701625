//! What whoever opens tables, and whoever has a request done, is told instead.
//!
//! Promise: each says whether something was done, and what the caller can do.
//! Never: stands for what a client asked wrongly; that is a [`Status`].

use std::error::Error;
use std::fmt::{Display, Formatter, Result};

use holdfast_store::{CommitError, OpenTreeError, SyncError, TransactionError};

use crate::answer::Status;

/// Why tables were not opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The store has no place for them.
    Trees(OpenTreeError),
    /// The store could not be read or written.
    Store(TransactionError),
    /// What was written could not be kept.
    Commit(CommitError),
    /// They are of another version, and nothing was changed. Use the program that made them.
    OtherVersion,
}

/// Why a request has no answer. But where it says otherwise, ask again, with the same number.
#[derive(Debug)]
#[non_exhaustive]
pub enum RespondError {
    /// The number is not from `oldest` on, or too far ahead of it, or one that was answered long
    /// ago. Nothing was done, and never will be.
    Number,
    /// Users of the store beside its tables were in the way. Nothing was done.
    Busy,
    /// The store could not do it. Nothing was done.
    Store(TransactionError),
    /// Whether it was done is known when it is asked again.
    Commit(CommitError),
    /// It was done when it was asked before, and is not as safe as it should be.
    Sync(SyncError),
    /// An entry of the store is none that tables write. Nothing was done; see
    /// [`check`](crate::Tables::check), and restore the store as it was.
    Damaged(&'static str),
}

/// Why a transaction on tables goes no further.
pub(crate) enum Stop {
    Refused(Status),
    Store(TransactionError),
    Damaged(&'static str),
}

impl From<TransactionError> for Stop {
    fn from(error: TransactionError) -> Stop {
        match error {
            TransactionError::KeyTooLarge
            | TransactionError::ValueTooLarge
            | TransactionError::TooLarge => Stop::Refused(Status::TooLarge),
            error => Stop::Store(error),
        }
    }
}

impl Stop {
    /// Whether it is only that others were in the way.
    pub(crate) fn is_deadlock(&self) -> bool {
        matches!(self, Stop::Store(TransactionError::Deadlock(_) | TransactionError::Doomed))
    }
}

impl From<Stop> for RespondError {
    fn from(stop: Stop) -> RespondError {
        match stop {
            Stop::Store(error) => RespondError::Store(error),
            Stop::Damaged(what) => RespondError::Damaged(what),
            // What serves no client is refused nothing but for want of room in the transaction.
            Stop::Refused(_) => RespondError::Store(TransactionError::TooLarge),
        }
    }
}

impl Display for OpenError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            OpenError::Trees(error) => write!(out, "{error}"),
            OpenError::Store(error) => write!(out, "{error}"),
            OpenError::Commit(error) => write!(out, "{error}"),
            OpenError::OtherVersion => write!(out, "the tables are of another version"),
        }
    }
}

impl Display for RespondError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            RespondError::Number => write!(out, "the request's number is none that can be asked"),
            RespondError::Busy => {
                write!(out, "other users of the store were in the way; ask again")
            }
            RespondError::Store(error) => write!(out, "{error}"),
            RespondError::Commit(error) => write!(out, "{error}"),
            RespondError::Sync(error) => write!(out, "{error}"),
            RespondError::Damaged(what) => write!(out, "{what}; restore the store"),
        }
    }
}

impl Error for OpenError {}
impl Error for RespondError {}

//! What is printed of an error: what failed, and what can be done.
//!
//! Promise: one line each.
//! Never: leaves out the error of the machine.

use std::error::Error;
use std::fmt::{Display, Formatter, Result};

use crate::error::{
    BackUpError, CloseError, DropTreeError, LoadTreeError, OpenError, OpenTreeError, ReclaimError,
    RestoreError, ServiceError,
};
use crate::node::KEY_BYTES_MAX;
use crate::node::large::LARGE_VALUE_BYTES_MAX;
use crate::restart::rollback::KEPT_BYTES_MAX;
use crate::transaction_error::{CommitError, TransactionError};

impl Display for TransactionError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Deadlock(blocked) => {
                write!(out, "transactions wait for one another: {blocked}; begin again")
            }
            Self::Busy(blocked) => {
                write!(out, "another transaction has the lock: {blocked}; try again later")
            }
            Self::Doomed => write!(out, "the transaction can only be aborted; begin again"),
            Self::SnapshotTooOld => write!(
                out,
                "more has changed since the snapshot than is kept; take a new one, or enlarge \
                 snapshot_bytes"
            ),
            Self::DroppedTree => write!(out, "the tree was dropped; ask for it by its name again"),
            Self::TooLarge => {
                write!(
                    out,
                    "a redo-only transaction keeps at most {KEPT_BYTES_MAX} bytes, and a group of \
                     records what the log takes at once; commit or roll back"
                )
            }
            Self::SavepointGone => {
                write!(out, "the transaction never was there, or went back behind this savepoint")
            }
            Self::OtherStore => write!(out, "the tree is another store's; ask this one for it"),
            Self::KeyTooLarge => write!(out, "a key has at most {KEY_BYTES_MAX} bytes"),
            Self::ValueTooLarge => write!(out, "a value has at most {LARGE_VALUE_BYTES_MAX} bytes"),
            Self::Page(error) => write!(out, "{error}"),
            Self::Corrupt { page, why } => {
                write!(out, "page {page} is damaged: {}; verify the store", why.0)
            }
            Self::PoolTooSmall => write!(out, "all frames are in use; enlarge the pool"),
            Self::Full(error) => write!(out, "the log is full; see to its disk: {error}"),
            Self::Poisoned(poisoned) => write!(out, "{poisoned}"),
        }
    }
}

impl Display for CommitError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Doomed => write!(out, "the transaction was rolled back; begin again"),
            Self::TooLarge => write!(out, "the log did not take the commit; begin again"),
            Self::NotDone(error) => write!(out, "the transaction was rolled back: {error}"),
            Self::NotDurable(error) => {
                write!(out, "committed, but not as safe as was asked; then sync: {error}")
            }
            Self::Poisoned(poisoned) => write!(out, "{poisoned}"),
        }
    }
}

impl Display for OpenError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::InUse => write!(out, "somebody has the store open"),
            Self::NotAStore => write!(out, "there is something else in the directory"),
            Self::Header => write!(out, "the file store is damaged; bring it from a backup"),
            Self::OtherVersion { found, known } => {
                write!(out, "the store is of version {found}; this program knows {known}")
            }
            Self::CreateLog(error) => write!(out, "the log cannot be made: {error}"),
            Self::Memory(error) => write!(out, "the log's ring cannot be had: {error}"),
            Self::OtherLog => write!(out, "the store was made with another log; name that one"),
            Self::Server(error) => write!(out, "the log cannot be had: {error}"),
            Self::SharedLog => {
                write!(out, "others could use the log, too; set its clients_max to 1")
            }
            Self::TakenLog => write!(out, "the log is somebody else's; name one that is new"),
            Self::RemadeLog => {
                write!(out, "the log was made anew; put the old one back, or restore the store")
            }
            Self::OlderLog { end, least } => write!(
                out,
                "the log is an older copy: it ends at {end} and had got to {least}; put the newer \
                 one back, or restore the store"
            ),
            Self::Log(error) => write!(out, "the log cannot be opened: {error}"),
            Self::Pages(error) => write!(out, "{error}"),
            Self::Loser(error) => {
                write!(out, "nobody can undo what was begun: {error}; restore the store")
            }
            Self::Names(error) => write!(out, "the names of trees cannot be made: {error}"),
            Self::Redo(error) | Self::Undo(error) => {
                write!(out, "{error}; or open it without a classical restart")
            }
            Self::Thread(error) => write!(out, "a thread cannot be started: {error}"),
            Self::Io(error) => write!(out, "the store cannot be opened: {error}"),
        }
    }
}

impl Display for BackUpError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::To(error) => write!(out, "the backup's directory: {error}"),
            Self::Exists => write!(out, "there is a backup already; bring it forward"),
            Self::OtherHistory => {
                write!(out, "the backup is of another store with the same past; make a new one")
            }
            Self::Pages(error) => write!(out, "{error}"),
        }
    }
}

impl Display for RestoreError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::From(error) => write!(out, "what is to be restored: {error}"),
            Self::To(error) => write!(out, "the new store's directory: {error}"),
            Self::Exists => write!(out, "there is a store already; name another directory"),
            Self::NotClosed => {
                write!(out, "the store was not closed; open and close it, or name a moment")
            }
            Self::Pages(error) => write!(out, "{error}"),
        }
    }
}

impl Display for OpenTreeError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Transaction(error) => write!(out, "the tree's name: {error}"),
            Self::Commit(error) => write!(out, "the new tree: {error}"),
        }
    }
}

impl Display for ReclaimError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Running => {
                write!(out, "a transaction has neither ended nor been dropped; open the store anew")
            }
            Self::Undo(error) => write!(out, "what was left to be undone is not: {error}"),
            Self::Tree(error) => write!(out, "nothing was freed: {error}"),
            Self::Free(error) => write!(out, "a page was not freed: {error}"),
        }
    }
}

impl Display for DropTreeError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Running => {
                write!(out, "a transaction has neither ended nor been dropped; open the store anew")
            }
            Self::Undo(error) => write!(out, "what was left to be undone is not: {error}"),
            Self::Transaction(error) => write!(out, "the tree is as it was: {error}"),
            Self::Commit(error) => write!(out, "{error}"),
        }
    }
}

impl Display for LoadTreeError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Exists => write!(out, "there is a tree of that name; drop it, or name another"),
            Self::NotSorted { key } => {
                write!(out, "the key {} is not above the one before", key.escape_ascii())
            }
            Self::Transaction(error) => write!(out, "there is no such tree: {error}"),
            Self::Commit(error) => write!(out, "{error}"),
        }
    }
}

impl Display for ServiceError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Flush(error) => write!(out, "{error}"),
            Self::Drain(error) => write!(out, "the log is not drained: {error}"),
            Self::Prepare(error) => write!(out, "the log has no next segment: {error}"),
            Self::Follow(error) => write!(out, "{error}"),
            Self::Checkpoint(error) => write!(out, "no checkpoint: {error}"),
            Self::Archive(error) => write!(out, "nothing was archived: {error}"),
            Self::Clean(error) => write!(out, "no page was cleaned: {error}"),
            Self::Merge(error) => write!(out, "no runs were merged: {error}"),
            Self::Undo(error) => write!(out, "a transaction was not rolled back: {error}"),
        }
    }
}

impl Display for CloseError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Sync(error) => write!(out, "what was committed last: {error}"),
            Self::Archive(error) => write!(out, "what is only in the log: {error}"),
            Self::Log(error) => write!(out, "the log was not closed: {error}"),
            Self::Io(error) => write!(out, "it was not noted that the store is closed: {error}"),
        }
    }
}

impl Error for TransactionError {}

impl Error for CommitError {}

impl Error for OpenError {}

impl Error for BackUpError {}

impl Error for RestoreError {}

impl Error for OpenTreeError {}

impl Error for ReclaimError {}

impl Error for DropTreeError {}

impl Error for LoadTreeError {}

impl Error for ServiceError {}

impl Error for CloseError {}

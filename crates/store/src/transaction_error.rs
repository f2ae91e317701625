//! What a transaction can be told instead of what it asked for.
//!
//! Promise: each says whether the transaction can go on, and what its caller can do.
//! Never: hides an I/O error behind a summary.

use std::io;
use std::sync::Arc;

use holdfast_pages::{FetchError, FlushError, PageNumber, Poisoned, StageError, SyncError, Unfit};

use crate::locks::blocked::Blocked;
use crate::restart::rollback::{Gone, TooLarge};
use crate::tree::TreeError;

/// Why an operation of a transaction was not done. Nothing has changed; but where it says
/// otherwise the transaction can go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransactionError {
    /// Others wait for this transaction who have what it asked for. It can only be aborted now; try
    /// again from its beginning.
    Deadlock(Box<Blocked>),
    /// Others have what it asked for, and it is one that never waits, or has waited as long as it
    /// may. Try again later, or abort.
    Busy(Box<Blocked>),
    /// It was told of a deadlock before. Abort it, and try again from its beginning.
    Doomed,
    /// It is redo-only, and its changes would have more bytes than [`crate::KEPT_BYTES_MAX`], or
    /// what it asks for is more than the log takes at once. Commit, or roll back.
    TooLarge,
    /// So much has changed since the snapshot was taken that what it would show is not kept any
    /// more, or transactions that run have changed so much: see [`crate::Config::snapshot_bytes`].
    /// Take a new one, or allow more.
    SnapshotTooOld,
    /// The tree was dropped, or emptied at once. Ask for it by its name again.
    DroppedTree,
    /// It was rolled back to a savepoint before this one, or this one is another transaction's.
    SavepointGone,
    /// The tree is another store's. Ask this one for its own.
    OtherStore,
    /// The key is longer than [`crate::KEY_BYTES_MAX`]. Use a shorter one.
    KeyTooLarge,
    /// The value is longer than [`crate::LARGE_VALUE_BYTES_MAX`]. Use a shorter one.
    ValueTooLarge,
    /// A page cannot be had. Other pages can.
    Page(FetchError),
    /// A page is not what its neighbours say. Verify the store; what is in other pages is there.
    Corrupt {
        /// The page.
        page: PageNumber,
        /// What is wrong.
        why: Unfit,
    },
    /// All frames of the pool are in use at once. Use a larger pool.
    PoolTooSmall,
    /// The log is full, and whoever makes room could not, for this reason. See to that, then try
    /// again.
    Full(Arc<io::Error>),
    /// The log failed, for good. Reading what is in memory goes on; open the store anew.
    Poisoned(Poisoned),
}

/// What became of a transaction whose commit did not do all that it was asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum CommitError {
    /// It was told of a deadlock before, and is rolled back now. Try again from its beginning.
    Doomed,
    /// It is not committed, and is rolled back now: its records are longer than what the log takes
    /// at once. Only one that is redo-only can be told so.
    TooLarge,
    /// It is redo-only, and could not be done, for this reason; it is rolled back now. After
    /// [`TransactionError::Deadlock`] or [`TransactionError::Busy`] try again from its beginning.
    NotDone(TransactionError),
    /// It is committed, and others see it, but it is not stable or durable as was asked: the log is
    /// full, or its disk, for this reason. See to that, then call [`crate::Store::sync`]; a crash
    /// before may undo it, and everything after it.
    NotDurable(Arc<io::Error>),
    /// The log failed, for good. Whether the transaction is committed is known when the store has
    /// been opened anew.
    Poisoned(Poisoned),
}

impl From<TreeError<FetchError>> for TransactionError {
    fn from(error: TreeError<FetchError>) -> TransactionError {
        match error {
            TreeError::Below(error) => TransactionError::Page(error),
            TreeError::Corrupt { page, why } => TransactionError::Corrupt { page, why },
            TreeError::KeyTooLarge => TransactionError::KeyTooLarge,
            TreeError::ValueTooLarge => TransactionError::ValueTooLarge,
            TreeError::Stage(error) => error.into(),
            TreeError::Flush(error) => error.into(),
            TreeError::PoolTooSmall => TransactionError::PoolTooSmall,
        }
    }
}

impl From<StageError> for TransactionError {
    fn from(error: StageError) -> TransactionError {
        match error {
            StageError::Poisoned(poisoned) => TransactionError::Poisoned(poisoned),
            _ => TransactionError::TooLarge,
        }
    }
}

impl From<FlushError> for TransactionError {
    fn from(error: FlushError) -> TransactionError {
        match error {
            FlushError::Poisoned(poisoned) => TransactionError::Poisoned(poisoned),
            FlushError::Full(error) => TransactionError::Full(error),
            error => TransactionError::Full(Arc::new(io::Error::other(error))),
        }
    }
}

impl From<TooLarge> for TransactionError {
    fn from(_: TooLarge) -> TransactionError {
        TransactionError::TooLarge
    }
}

impl From<Gone> for TransactionError {
    fn from(_: Gone) -> TransactionError {
        TransactionError::SavepointGone
    }
}

impl From<StageError> for CommitError {
    fn from(error: StageError) -> CommitError {
        match error {
            StageError::Poisoned(poisoned) => CommitError::Poisoned(poisoned),
            _ => CommitError::TooLarge,
        }
    }
}

impl From<TransactionError> for CommitError {
    fn from(error: TransactionError) -> CommitError {
        match error {
            TransactionError::Doomed => CommitError::Doomed,
            TransactionError::TooLarge => CommitError::TooLarge,
            TransactionError::Poisoned(poisoned) => CommitError::Poisoned(poisoned),
            error => CommitError::NotDone(error),
        }
    }
}

impl From<FlushError> for CommitError {
    fn from(error: FlushError) -> CommitError {
        SyncError::from(error).into()
    }
}

impl From<SyncError> for CommitError {
    fn from(error: SyncError) -> CommitError {
        match error {
            SyncError::Poisoned(poisoned) => CommitError::Poisoned(poisoned),
            SyncError::Full(error) | SyncError::Unprepared(error) => CommitError::NotDurable(error),
            error => CommitError::NotDurable(Arc::new(io::Error::other(error))),
        }
    }
}

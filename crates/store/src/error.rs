//! What can go wrong with a whole store, and what the caller can do about it.
//!
//! Promise: one enum per public operation; damage is named.
//! Never: hides an I/O error behind a summary.

use std::io;

use holdfast_client::ConnectError;
use holdfast_log::{CommitError as LogError, Lsn};
use holdfast_pages::{
    ArchiveError, BackupError, CheckpointError, CleanError, FlushError, FollowError, MergeError,
    OpenError as PagesError, RestoreError as PagesRestoreError, SyncError,
};

use crate::face::header::{NoHeader, VERSION};
use crate::face::place::PlaceError;
use crate::transaction_error::{CommitError, TransactionError};

/// Why a store was not opened. But for a store that was being made, nothing has changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Somebody has it open. Wait, or find out who.
    InUse,
    /// The directory holds something else, or a store whose file `store` is gone.
    NotAStore,
    /// The file `store` is damaged. Bring it from a backup.
    Header,
    /// It is of another version: open it with that one.
    OtherVersion {
        /// Version found.
        found: u16,
        /// Version this program knows.
        known: u16,
    },
    /// The log was not made: see to its sizes, or to the disk.
    CreateLog(holdfast_log::CreateError),
    /// The ring cannot be had. See to the medium, or to its size.
    Memory(io::Error),
    /// The store's log is another one than it is told to use. Name the one it was made with.
    OtherLog,
    /// The server does not give us the log. See to the server, and open again.
    Server(ConnectError),
    /// Others could use the log, too. Set its `clients_max` to 1 in the server's configuration.
    SharedLog,
    /// The log has something else in it, or is another store's. Name one that is new.
    TakenLog,
    /// The store's log was removed and made anew, and what only the old one had is not in this one.
    /// Put the old one back, or restore the store, into a new log, from what is archived.
    RemadeLog,
    /// The log ends before where it had got to when the store was opened last: it is an older copy,
    /// and what the newer one had is not in this one. Put that one back, or restore the store.
    OlderLog {
        /// Where it ends.
        end: Lsn,
        /// Where it should at the earliest.
        least: Lsn,
    },
    /// The log was not opened.
    Log(holdfast_log::OpenError),
    /// The pages were not opened.
    Pages(PagesError),
    /// A transaction that had not ended has something to undo that is no change, or that lies in a
    /// page which cannot be had. Restore the store from its archive.
    Loser(TransactionError),
    /// The tree of names was not made.
    Names(TransactionError),
    /// A page was not brought up to date, as a classical restart does first. An instant one needs
    /// it only when somebody wants it.
    Redo(TransactionError),
    /// A loser was not undone, as a classical restart does first. An instant one needs that only
    /// when somebody wants what it changed.
    Undo(TransactionError),
    /// A thread was not started.
    Thread(io::Error),
    /// The machine does not give us a directory or a file. Open again.
    Io(io::Error),
}

impl From<PlaceError> for OpenError {
    fn from(error: PlaceError) -> OpenError {
        match error {
            PlaceError::InUse => OpenError::InUse,
            PlaceError::Taken => OpenError::NotAStore,
            PlaceError::Io(error) => OpenError::Io(error),
        }
    }
}

impl From<NoHeader> for OpenError {
    fn from(fault: NoHeader) -> OpenError {
        match fault {
            NoHeader::Free | NoHeader::Taken => OpenError::NotAStore,
            NoHeader::Damaged => OpenError::Header,
            NoHeader::OtherVersion(found) => OpenError::OtherVersion { found, known: VERSION },
            NoHeader::Io(error) => OpenError::Io(error),
        }
    }
}

/// Why there is no backup, or it was not brought forward. The store is as it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackUpError {
    /// The directory holds something else, or cannot be had. Name another one.
    To(OpenError),
    /// There is a backup already. Bring it forward, or name another directory.
    Exists,
    /// It is a backup of the store that this one was made from, or of another one made from that.
    /// Make a new one.
    OtherHistory,
    /// The pages were not copied.
    Pages(BackupError),
}

/// Why no store was restored. What it was to be made from is as it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// What it is to be made from is no backup and no store, or somebody has it open.
    From(OpenError),
    /// The directory that it is to be in cannot be had, or is not empty. Name another one.
    To(OpenError),
    /// There is a store already. Name another directory.
    Exists,
    /// The store was not closed, so its archive lacks what came last. Open and close it, or name a
    /// moment that the archive has.
    NotClosed,
    /// The pages were not made.
    Pages(PagesRestoreError),
}

/// Why a tree was not found, or made.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenTreeError {
    /// Its name was not read, or written.
    Transaction(TransactionError),
    /// It was not made.
    Commit(CommitError),
}

impl From<TransactionError> for OpenTreeError {
    fn from(error: TransactionError) -> OpenTreeError {
        OpenTreeError::Transaction(error)
    }
}

impl From<CommitError> for OpenTreeError {
    fn from(error: CommitError) -> OpenTreeError {
        OpenTreeError::Commit(error)
    }
}

/// Why a tree was not made of keys in order. There is none of that name then, but for what a commit
/// says.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadTreeError {
    /// There is a tree of that name. Drop it first, or load another one.
    Exists,
    /// A key is not above the one before. Sort them, and leave out what comes twice.
    NotSorted {
        /// The key.
        key: Vec<u8>,
    },
    /// A page was not made, or the name not read or written. See to the reason, then call again.
    Transaction(TransactionError),
    /// It says what has become of the tree.
    Commit(CommitError),
}

impl From<TransactionError> for LoadTreeError {
    fn from(error: TransactionError) -> LoadTreeError {
        LoadTreeError::Transaction(error)
    }
}

impl From<CommitError> for LoadTreeError {
    fn from(error: CommitError) -> LoadTreeError {
        LoadTreeError::Commit(error)
    }
}

/// Why pages that no tree leads to were not freed, or not all of them. Nothing else has changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReclaimError {
    /// A transaction has changed something and has neither ended nor been dropped, so nobody knows
    /// what it needs. Open the store anew, which rolls it back.
    Running,
    /// What was left to be undone is not undone. See to the reason, then call again.
    Undo(TransactionError),
    /// A tree is damaged, or could not be read whole, so nothing was freed. Verify the store.
    Tree(TransactionError),
    /// A page was not freed. See to the reason, then call again.
    Free(TransactionError),
}

/// Why a tree was not dropped or emptied.
#[derive(Debug)]
#[non_exhaustive]
pub enum DropTreeError {
    /// A transaction has changed something and has neither ended nor been dropped. Open the store
    /// anew, which rolls it back.
    Running,
    /// What was left to be undone is not undone. See to the reason, then call again.
    Undo(TransactionError),
    /// The tree is as it was. See to the reason, then call again.
    Transaction(TransactionError),
    /// It says what has become of the tree.
    Commit(CommitError),
}

impl From<TransactionError> for DropTreeError {
    fn from(error: TransactionError) -> DropTreeError {
        DropTreeError::Transaction(error)
    }
}

/// Why a service did not do what there was to do. The store is as good as before; it is tried again
/// with the next step.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServiceError {
    /// Records were not handed to the log.
    Flush(FlushError),
    /// The log was not brought to its device.
    Drain(LogError),
    /// The log has no segment for what comes next.
    Prepare(LogError),
    /// The stream was not followed.
    Follow(FollowError),
    /// There is no checkpoint.
    Checkpoint(CheckpointError),
    /// Nothing was archived.
    Archive(ArchiveError),
    /// No page was cleaned.
    Clean(CleanError),
    /// No runs were merged.
    Merge(MergeError),
    /// A loser was not rolled back.
    Undo(TransactionError),
}

/// Why a store was not closed in order. Nothing that was durable is lost; open it again.
#[derive(Debug)]
#[non_exhaustive]
pub enum CloseError {
    /// What was committed last is not durable.
    Sync(SyncError),
    /// It is only in the log.
    Archive(ArchiveError),
    /// The log was not closed.
    Log(LogError),
    /// It was not noted that everything is in the archive.
    Io(io::Error),
}

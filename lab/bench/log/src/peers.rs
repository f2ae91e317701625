//! The logs that are compared, and what each of them is asked to do.
//!
//! Promise: whatever stands in `ALL` gets the same records, in the same sets, with the same
//! durability, and must give back what it took. To add a log: a file in `peers/` with an `open` and
//! a `read`, and a line in `ALL`.
//! Never: tunes a log beyond what its own documentation offers.
//!
//! | name | version | licence | what is to be known |
//! |---|---|---|---|
//! | `holdfast` | this one | MIT or Apache-2.0 | unsynced sets are in its own memory first |
//! | `raft-engine` | 0.4.2 | Apache-2.0 | a raft group a writer; `Engine::sync` does nothing |
//! | `okaywal` | 0.3.1 | MIT or Apache-2.0 | syncs always, so it has no figure without |
//! | `wal-db` | 1.1.0 | Apache-2.0 or MIT | knows no sets: k appends, then one sync |
//! | `open-wal` | 0.2.1 | BSD-3-Clause | one writer: threads take turns at a mutex |
//! | `rocksdb` | library 7.8.3 | Apache-2.0 | also fills its memtable, from which it is read |
//! | `fjall` | 3.1.13 | MIT or Apache-2.0 | also fills its memtable, from which it is read |
//!
//! Two loops run with them and keep nothing: `device`, one block of 4 KiB a set written with
//! `O_DIRECT` and `O_DSYNC` into a file of zeros, and `device-buffered`, the bare bytes of a set
//! written into such a file and synced by `fdatasync`. With one thread they are the limit. With
//! more they are what the device does when nobody gathers sets: a log that does can be faster.
//!
//! All of them build with Rust 1.95 and give back what they took, which every run checks again, so
//! none is left out. The `rocksdb` crate is 0.19.0, not the newest, because that is the newest one
//! whose calls Debian 12's library all has.

mod device;
mod fjall;
mod holdfast;
mod okaywal;
mod open_wal;
mod raft_engine;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod wal_db;

pub(crate) use self::holdfast::{SEALED_PARITY, options};

use std::path::Path;

use crate::Failure;
use crate::record::Format;
use crate::set::Set;
use crate::tally::Tally;

/// When an appended set must be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Before `append` returns.
    Synced,
    /// Before `sync` returns. The clock of such runs is read when the last `append` returned, and
    /// again when `sync` did; a log whose own memory may hold a part at the first of these says so
    /// by [`Unsynced::Batches`].
    Deferred,
}

/// What a log is told when it is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) durability: Durability,
    /// How the records are written: for a log that encodes by itself.
    pub(crate) format: Format,
    /// Bytes that will be appended at most: for a log that prepares its room.
    pub(crate) bytes: u64,
}

impl Terms {
    /// Those of a log that is opened after a crash, and not written much.
    pub(crate) fn recovery(format: Format) -> Terms {
        Terms { durability: Durability::Synced, format, bytes: RECOVERY_BYTES }
    }
}

/// Bytes that are appended to a log after a crash, at most.
const RECOVERY_BYTES: u64 = 1 << 20;

/// A log that is open: ours or another's.
pub(crate) trait Peer: Sync {
    /// What one thread appends through.
    fn writer(&self) -> Box<dyn Writer + '_>;

    /// Returns when everything appended is durable.
    fn sync(&self) -> Result<(), Failure>;

    /// Ends its threads.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// One thread's way into a log.
pub(crate) trait Writer {
    /// Appends a set, all of it or nothing; durable on return under [`Durability::Synced`].
    fn append(&mut self, set: &mut Set<'_>) -> Result<(), Failure>;
}

/// What a log can do without a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsynced {
    /// Each set goes to the kernel and no further.
    Sets,
    /// Sets gather in memory and are synced together.
    Batches,
    /// Sets gather in the process's memory, and a thread of the log's makes them durable meanwhile.
    Memory,
    /// Nothing: each set is synced.
    Never,
}

/// Makes a log in a folder, or opens the one that is there.
type Open = fn(&Path, &Terms) -> Result<Box<dyn Peer>, Failure>;

/// Opens a log, gives every record to the tally, and closes it.
type Read = fn(&Path, &mut Tally) -> Result<(), Failure>;

/// A kind of log.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) open: Open,
    /// Nothing if it is a limit, which keeps nothing.
    pub(crate) read: Option<Read>,
    pub(crate) unsynced: Unsynced,
}

impl Kind {
    /// Says in which log, and doing what, something failed.
    pub(crate) fn named<T>(&self, what: &str, done: Result<T, Failure>) -> Result<T, Failure> {
        done.map_err(|error| format!("{}: {what}: {error}", self.name).into())
    }
}

/// All of them.
const ALL: &[Kind] = &[
    device::DIRECT,
    device::BUFFERED,
    holdfast::KIND,
    raft_engine::KIND,
    okaywal::KIND,
    wal_db::KIND,
    open_wal::KIND,
    #[cfg(feature = "rocksdb")]
    rocksdb::KIND,
    fjall::KIND,
];

/// The log that the others are peers of.
pub(crate) const OURS: &str = "holdfast";

/// The limit of synced sets.
pub(crate) const DEVICE: &str = "device";

/// Each of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Kind> {
    ALL.iter()
}

#[cfg(test)]
mod tests;

//! The stores that are compared, and what each of them is asked to do.
//!
//! Promise: whatever stands in `ALL` gets the same rows and the same transactions, with the same
//! durability, serializable, and its sums are compared after each run. To add a store: a file in
//! `peers/` with an `open`, and a line in `ALL`.
//! Never: tunes a store beyond what its own documentation offers.
//!
//! | name | version | licence | what is to be known |
//! |---|---|---|---|
//! | `holdfast` | this one | MIT or Apache-2.0 | not synced, in memory of no process |
//! | `rocksdb` | library 7.8.3 | Apache-2.0 | `TransactionDB`: locks; commits share syncs |
//! | `fjall` | 3.1.13 | MIT or Apache-2.0 | optimistic transactions; who conflicts goes again |
//! | `redb` | 4.5.0 | MIT or Apache-2.0 | one writer: threads take turns at its lock |
//! | `lmdb` | `heed` 0.23.1 | OpenLDAP, MIT | one writer: threads take turns at its lock |
//! | `sqlite` | `rusqlite` 0.41.1, its own SQLite | public domain | one writer, in turns |
//!
//! PostgreSQL stands beside them where stores are opened after a kill: see `postgres`.
//!
//! The `rocksdb` crate is 0.19.0, not the newest, because that is the newest one whose calls Debian
//! 12's library all has.

mod fjall;
pub(crate) mod holdfast;
mod lmdb;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sqlite;

use std::ops::Range;
use std::path::Path;

use crate::Failure;
use crate::tpcb::{Move, Table, Total};

/// What a commit that has returned survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The end of the process, of the system and of the power.
    Synced,
    /// The end of the process, where a store offers that; [`Kind::kills_lose`] says where not.
    Kernel,
}

/// What a store is told when it is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) durability: Durability,
    /// Memory for what it keeps of its files.
    pub(crate) cache_bytes: usize,
    /// Whether what is committed stays in the log, as far as the store can do without writing it to
    /// where it belongs.
    pub(crate) put_off: bool,
    /// Whether it keeps what was, where it can.
    pub(crate) keeps_past: bool,
}

/// A store that is open.
pub(crate) trait Peer: Sync {
    /// Puts the rows of these ids into a table, in one transaction.
    fn fill(&self, table: Table, ids: Range<u64>) -> Result<(), Failure>;

    /// Takes the rows of these ids out of a table, in one transaction.
    fn take(&self, table: Table, ids: &[u64]) -> Result<(), Failure>;

    /// The id of a table's first row.
    fn head(&self, table: Table) -> Result<Option<u64>, Failure>;

    /// What one thread asks through.
    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure>;

    /// Adds up a table.
    fn total(&self, table: Table) -> Result<Total, Failure>;

    /// What it keeps under keys and values of any length, if it is asked to here.
    fn entries(&self) -> Option<&dyn Entries> {
        None
    }

    /// Bytes that it has given to its log, if it says.
    fn log_bytes(&self) -> Option<u64> {
        None
    }

    /// Ends its threads.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// One thread's way into a store.
pub(crate) trait Worker {
    /// Does one transaction, all of it or nothing, as durable as the store was told.
    fn transaction(&mut self, it: &Move) -> Result<(), Failure>;
}

/// A table whose keys and values are of any length.
pub(crate) trait Entries: Sync {
    /// Makes these changes in one transaction, in order.
    fn change(&self, changes: Vec<Change>) -> Result<(), Failure>;

    /// Shows every entry.
    fn each(&self, look: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure>;
}

/// One of the changes of a transaction.
pub(crate) enum Change {
    /// An entry is there, in the place of another with its key.
    Put(Vec<u8>, Vec<u8>),
    /// The entry of a key that is there goes.
    Delete(Vec<u8>),
    /// All entries go from the first of these keys to the last, which are these: as a range, if the
    /// store's transactions have a call for that, and each by itself if not.
    DeleteAll(Vec<Vec<u8>>),
}

/// The table that entries are in.
pub(crate) const ENTRIES: Table = Table::Accounts;

/// Makes a store in a folder, or opens the one that is there.
type Open = fn(&Path, &Terms) -> Result<Box<dyn Peer>, Failure>;

/// A kind of store.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) open: Open,
    /// Whether what is committed goes to a log first.
    pub(crate) has_log: bool,
    /// Whether the end of the process loses what was committed with [`Durability::Kernel`].
    pub(crate) kills_lose: bool,
    /// Whether its tables have keys and values of any length.
    pub(crate) has_entries: bool,
}

/// All of them.
const ALL: &[Kind] = &[
    holdfast::KIND,
    #[cfg(feature = "rocksdb")]
    rocksdb::KIND,
    fjall::KIND,
    redb::KIND,
    lmdb::KIND,
    sqlite::KIND,
];

/// The store that the others are peers of.
pub(crate) const OURS: &str = "holdfast";

/// Each of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Kind> {
    ALL.iter()
}

/// The one of this name.
pub(crate) fn known(name: &str) -> Result<&'static Kind, Failure> {
    all().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<_> = all().map(|kind| kind.name).collect();
        format!("no such store: {name}; there are {}", names.join(", ")).into()
    })
}

#[cfg(test)]
mod tests;

//! A store of keys and values in trees of pages that a log keeps.
//!
//! Promise: a transaction is there whole or not at all, and as safe as was asked for when its
//! commit returns; a restart reads no page before somebody wants it, but those that tell what large
//! transactions would have to undo. A tree's page changes only as
//! the body of a record says, so doing and redoing give the same bytes; a body that does not fit
//! its page is told, never obeyed.
//! Never: reads or writes a page on a device; that is `holdfast-pages`.
//!
//! ```
//! use holdfast_store::{Config, Direction, Durability, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let place = tempfile::tempdir()?;
//! # let directory = place.path();
//! let (store, _) = Store::open(directory, &Config::default())?;
//! let fruits = store.tree("fruits")?;
//!
//! let mut transaction = store.begin();
//! transaction.put(&fruits, b"apple", b"red")?;
//! transaction.put(&fruits, b"apricot", b"orange")?;
//! // Dropped instead, it would never have been.
//! transaction.commit(Durability::Disk)?;
//!
//! let mut reading = store.begin();
//! assert_eq!(reading.get(&fruits, b"apple")?, Some(b"red".to_vec()));
//! for found in reading.scan_prefix(&fruits, b"ap", Direction::Up) {
//!     let (key, value) = found?;
//!     assert!(key.starts_with(b"ap") && !value.is_empty());
//! }
//! drop(reading);
//!
//! // Nothing that was durable is lost without this; the next open has less to do.
//! store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Where a page is damaged, what needs it is told so by [`TransactionError::Page`], and all else
//! goes on; `docs/store.md` says what is repaired from what.
//!
//! Where to look: `store` is opened and closed, at a `place` with its `directories`, as its
//! `config` says; `header` tells that it is one, `closing` whether it is closed, `log` is its log,
//! `embedded` here or `served` elsewhere. `transaction` is what its users do with a `named_tree`,
//! on an `engine` that all of them share; `slots` are their numbers, `transaction_error` is what
//! they are told. What has to be done beside them is in `services`, how all that goes in `stat` and
//! `statistics` (pool and locks give `counts`), and whether pages are right in `verify`; `tally`
//! counts what happens often; `loading` makes a tree of keys in order; `reclaim` frees those that
//! nobody reaches; `backup` makes copies, and stores from copies.
//!
//! Of trees: `node` is a page of a tree as it is read, `node_change` as it is changed, and
//! `node_check` looks at all of it. `body` is one such change as bytes, `contents` is where bodies
//! and images meet nodes, and `fields` is how both are spelled. `large` is how a leaf tells of a
//! value that lies elsewhere. `tree` goes from a root to its leaves and changes them, `trees` are
//! all of them and their names, `allocator` says which page begins next. `pool` has pages in
//! memory, in its `frames`, `page_table` says in which, and `evict` which of them leave; `latches`
//! sees to it that nobody waits who has one.
//!
//! Of snapshots: `snapshot` is what reads without locks, `formers` what keys were for it, by
//! layers, and `former` one such key.
//!
//! Of transactions: `names` is what a lock is on, `modes` what it permits, `locks` who has it, and
//! `waits` who would wait for ever; `blocked` is what one is told who is refused one. `rollback` is
//! what a running transaction would undo, `aside` where most of that lies if it is much, `losers`
//! are those that nobody runs any more.

mod allocator;
mod aside;
mod backup;
mod blocked;
mod body;
mod classical;
mod closing;
mod config;
mod contents;
mod counts;
mod directories;
mod display;
mod dropping;
mod embedded;
mod engine;
mod error;
mod evict;
mod fields;
mod former;
mod formers;
mod frames;
mod header;
mod large;
mod latches;
mod loading;
mod locks;
mod log;
mod losers;
mod modes;
mod named_tree;
mod names;
mod node;
mod node_change;
mod node_check;
mod page_table;
mod place;
mod pool;
mod reclaim;
mod rollback;
mod served;
mod services;
mod slots;
mod snapshot;
mod stat;
mod statistics;
mod store;
mod tally;
mod transaction;
mod transaction_error;
mod tree;
mod trees;
mod verify;
mod waits;

pub use backup::{restore, restore_at};
pub use blocked::Blocked;
pub use config::{Checkpoints, Cleaner, Config, Eviction, LogPlace, Restart, Services};
pub use counts::{LockStatistics, PoolStatistics};
pub use directories::{Directories, archive_of, log_of};
pub use engine::Durability;
pub use error::{
    BackUpError, CloseError, DropTreeError, LoadTreeError, OpenError, OpenTreeError, ReclaimError,
    RestoreError, ServiceError,
};
pub use holdfast_client::ConnectError;
pub use holdfast_log::Spoilt;
pub use holdfast_memory::Medium;
pub use holdfast_pages::{
    At, CheckpointError, CleanError, CleaningOrder, Compression, FaultKind, FlushError, Keep,
    Manifest, Moment, PageNumber, Progress, Rsn, SyncError,
};
pub use large::LARGE_VALUE_BYTES_MAX;
pub use named_tree::Tree;
pub use node::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use place::Place;
pub use rollback::{KEPT_BYTES_MAX, Savepoint};
pub use services::Service;
pub use snapshot::{Snapshot, SnapshotScan};
pub use stat::Stat;
pub use statistics::Statistics;
pub use store::{Recovery, Store};
pub use transaction::{Committed, Direction, KeyValue, Scan, Transaction, TwoEnded};
pub use transaction_error::{CommitError, TransactionError};
pub use trees::CheckedTrees;
pub use verify::{Verified, VerifyFault};

#[cfg(test)]
mod tests;

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
//! A store belongs to the process that opened it. What that process forks without starting another
//! program is refused whatever would change the store, as if the log had failed, and dropping the
//! store there does nothing; its parent goes on as if there were no child.
//!
//! Where a page is damaged, what needs it is told so by [`TransactionError::Page`], and all else
//! goes on; `docs/store.md` says what is repaired from what.
//!
//! Where to look: `store` is opened and closed, `transaction` is what its users do, on an `engine`
//! that all of them share, and `transaction_error` what they are told; `snapshot` is what reads
//! without locks, `formers` what keys were for it, by layers. `backup` makes copies, and stores
//! from copies. Then there are rooms:
//!
//! * `face`: at which `place` with which `directories` a store lies, and what its `config` says;
//!   `header` tells that it is one, `closing` whether it is closed. What has to be done beside
//!   transactions is in `services`, how all that goes in `stat` and `statistics`, and whether
//!   pages are right in `verify`.
//! * `log`: its log, `embedded` here or `served` elsewhere.
//! * `tree`: goes from a root to its leaves and changes them.
//! * `trees`: all of them and their names, each a `named_tree`; `loading` makes one of keys in
//!   order, `dropping` is how they go.
//! * `node`: a page of a tree as it is read, `node_change` as it is changed, and `node_check`
//!   looks at all of it. `body` is one such change as bytes, `contents` is where bodies and images
//!   meet nodes, `fields` how both are spelled, `large` how a leaf tells of a value that lies
//!   elsewhere, and `aside` where most of what is to be undone lies if it is much.
//! * `pool`: has pages in memory, in its `frames`, `page_table` says in which, and `evict` which
//!   of them leave; `latches` sees to it that nobody waits who has one. `allocator` says which
//!   page begins next; `tally` and `counts` are its numbers.
//! * `locks`: who has one; `names` is what it is on, `modes` what it permits, `waits` who would
//!   wait for ever, and `blocked` what one is told who is refused one.
//! * `restart`: what transactions leave: `rollback` is what a running one would undo, `losers` are
//!   those that nobody runs any more, `slots` their numbers, and `reclaim` frees pages that nobody
//!   reaches. `classical` is for comparison.

mod backup;
mod display;
mod engine;
mod error;
mod face;
mod locks;
mod log;
mod node;
mod pool;
mod restart;
mod snapshot;
mod store;
mod transaction;
mod transaction_error;
mod tree;
mod trees;

pub use backup::{restore, restore_at};
pub use engine::Durability;
pub use error::{
    BackUpError, CloseError, DropTreeError, LoadTreeError, OpenError, OpenTreeError, ReclaimError,
    RestoreError, ServiceError,
};
pub use face::config::{Checkpoints, Cleaner, Config, Eviction, LogPlace, Restart, Services};
pub use face::directories::{Directories, archive_of, log_of};
pub use face::place::Place;
pub use face::services::Service;
pub use face::stat::Stat;
pub use face::statistics::Statistics;
pub use face::verify::{Verified, VerifyFault};
pub use holdfast_client::ConnectError;
pub use holdfast_log::Spoilt;
pub use holdfast_memory::Medium;
pub use holdfast_pages::{
    At, CheckpointError, CleanError, CleaningOrder, Compression, FaultKind, FlushError, Keep,
    Manifest, Moment, PageNumber, Progress, Rsn, SyncError,
};
pub use locks::blocked::Blocked;
pub use node::large::LARGE_VALUE_BYTES_MAX;
pub use node::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use pool::counts::{LockStatistics, PoolStatistics};
pub use pool::unfreed::UNFREED_PAGES_MAX;
pub use restart::rollback::{KEPT_BYTES_MAX, Savepoint};
pub use snapshot::{Snapshot, SnapshotScan};
pub use store::{Recovery, Store};
pub use transaction::{Committed, Direction, KeyValue, Scan, Transaction, TwoEnded};
pub use transaction_error::{CommitError, TransactionError};
pub use trees::CheckedTrees;
pub use trees::named_tree::Tree;

#[cfg(test)]
mod tests;

//! Reading what was committed at one place of the stream, whatever is committed later.
//!
//! Promise: a snapshot shows what the records before its place come to, without what had not been
//! committed there: what a store restored to that moment has. It takes no lock, waits for none, and
//! nobody waits for it. What it holds goes when it is dropped.
//! Never: changes anything; shows less or more the longer it lives: it ends with an error first.

pub(crate) mod former;
pub(crate) mod formers;

use std::sync::Arc;

use holdfast_pages::{FetchError, Rsn, SyncError};

use crate::engine::{Durability, Engine};
use crate::node::aside::Aside;
use crate::node::large::Stored;
use crate::pool::latches;
use crate::snapshot::former::Former;
use crate::snapshot::formers::{Reader, Running};
use crate::store::{Store, root_of};
use crate::transaction::Direction;
use crate::transaction_error::TransactionError;
use crate::tree::TreeError;
use crate::trees::DROPPED;
use crate::trees::named_tree::Tree;

mod scan;

pub use scan::SnapshotScan;

/// All that was committed before one place of the stream, to be read: see [`Store::snapshot`]. Any
/// number of threads may read by it at once.
pub struct Snapshot<'s> {
    engine: &'s Engine,
    reader: Arc<Reader>,
}

impl Store {
    /// Takes a snapshot: every transaction is in it whose commit has returned, and none that
    /// commits later. It shows the same as long as it lives, in all trees, and locks nothing. What
    /// others change meanwhile costs memory, and has a bound: see
    /// [`Config::snapshot_bytes`](crate::Config::snapshot_bytes).
    ///
    /// ```
    /// use holdfast_store::{Config, Direction, Durability, Store};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let place = tempfile::tempdir()?;
    /// # let directory = place.path();
    /// let (store, _) = Store::open(directory, &Config::default())?;
    /// let fruits = store.tree("fruits")?;
    /// let mut planting = store.begin();
    /// planting.put(&fruits, b"apple", b"red")?;
    /// planting.commit(Durability::Memory)?;
    ///
    /// let snapshot = store.snapshot()?;
    /// let mut harvest = store.begin();
    /// // Neither waits for the other, in whatever order they come.
    /// harvest.delete(&fruits, b"apple")?;
    /// assert_eq!(snapshot.get(&fruits, b"apple")?, Some(b"red".to_vec()));
    /// harvest.commit(Durability::Memory)?;
    /// for found in snapshot.scan::<&[u8]>(&fruits, .., Direction::Up) {
    ///     assert_eq!(found?, (b"apple".to_vec(), b"red".to_vec()));
    /// }
    /// // Whoever tells others of it may want to know that no loss of power undoes it.
    /// snapshot.settle(Durability::Disk)?;
    /// drop(snapshot);
    ///
    /// assert_eq!(store.snapshot()?.get(&fruits, b"apple")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`TransactionError`]. What was committed is handed to the log first, as by a commit of
    /// class Memory: so [`TransactionError::Full`] or [`TransactionError::Poisoned`] may be told.
    pub fn snapshot(&self) -> Result<Snapshot<'_>, TransactionError> {
        Snapshot::take(&self.work.engine)
    }
}

impl<'s> Snapshot<'s> {
    fn take(engine: &'s Engine) -> Result<Snapshot<'s>, TransactionError> {
        latches::may_wait();
        let reader = engine.formers.take(|| {
            engine.stream().flush()?;
            let running = engine.pages.running().map_err(FetchError::from);
            let (at, running) = running.map_err(TransactionError::Page)?;
            let bodies = running.into_iter().flat_map(|(_, bodies)| bodies.into_iter().rev());
            Ok::<_, TransactionError>((at, running_of(engine, bodies)?))
        })?;
        Ok(Snapshot { engine, reader })
    }

    /// Where it stands: it shows the transactions whose [`Committed::at`](crate::Committed) is not
    /// behind this, and is what [`crate::restore_at`] makes of this moment.
    #[must_use]
    pub fn at(&self) -> Rsn {
        self.reader.at()
    }

    /// The tree of this name, if there was one.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn find_tree(&self, name: &str) -> Result<Option<Tree>, TransactionError> {
        let found = self.get(&self.engine.names(), name.as_bytes())?;
        found.map(|value| Ok(self.engine.tree_named(name, root_of(&value)?))).transpose()
    }

    /// The names of all trees that there were, in order.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn tree_names(&self) -> Result<Vec<String>, TransactionError> {
        let names = self.scan(&self.engine.names(), ..&[DROPPED][..], Direction::Up);
        names.map(|found| Ok(String::from_utf8_lossy(&found?.0).into_owned())).collect()
    }

    /// The value that a key had.
    ///
    /// # Errors
    /// See [`TransactionError`]; [`TransactionError::SnapshotTooOld`] once it is over.
    pub fn get(&self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>, TransactionError> {
        self.check_tree(tree)?;
        let former = self.engine.trees().tree(tree.root).get_as_of(key, &self.reader);
        let former = self.told(former.map_err(TransactionError::from))?;
        let stored = self.committed(tree, key, former)?;
        stored.map(|stored| self.value_of(tree, stored)).transpose()
    }

    /// The values that several keys had, in the order in which they are named.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>, TransactionError> {
        keys.iter().map(|key| self.get(tree, key.as_ref())).collect()
    }

    /// Returns when all that it shows is as safe as is asked for, whatever it was committed as.
    ///
    /// # Errors
    /// See [`SyncError`].
    pub fn settle(&self, durability: Durability) -> Result<(), SyncError> {
        latches::may_wait();
        match durability {
            // It was handed to the log when the snapshot was taken.
            Durability::Memory => Ok(()),
            Durability::Disk => self.engine.stream().sync(self.at()),
        }
    }

    fn check_tree(&self, tree: &Tree) -> Result<(), TransactionError> {
        let is_ours = tree.store == self.engine.header;
        if is_ours { self.engine.check_tree(tree.root) } else { Err(TransactionError::OtherStore) }
    }

    /// What was read, if the snapshot was not over when it was.
    fn told<T>(&self, read: Result<T, TransactionError>) -> Result<T, TransactionError> {
        if self.reader.is_over() { Err(TransactionError::SnapshotTooOld) } else { read }
    }

    /// What the leaf of a key said of its value when that was committed last.
    fn committed(
        &self,
        tree: &Tree,
        key: &[u8],
        former: Former,
    ) -> Result<Option<Vec<u8>>, TransactionError> {
        let before = former.before(self.reader.running(tree.root, key));
        before.map_err(|why| TransactionError::Corrupt { page: tree.root, why })
    }

    /// The value that a leaf said this of.
    fn value_of(&self, tree: &Tree, stored: Vec<u8>) -> Result<Vec<u8>, TransactionError> {
        match Stored::of(&stored) {
            Ok(Stored::Plain(value)) if value.len() == stored.len() => Ok(stored),
            _ => {
                let value = self.engine.trees().tree(tree.root).load(&stored);
                self.told(value.map_err(TransactionError::from))
            }
        }
    }
}

/// What these bodies tell, wherever the changes lie that they stand for. The snapshot is announced,
/// so the pages of those stay.
fn running_of(
    engine: &Engine,
    bodies: impl Iterator<Item = Vec<u8>>,
) -> Result<Running, TransactionError> {
    let mut running = Running::default();
    let mut add = |body: &[u8]| {
        running.add(body).map_err(TreeError::from)?;
        let is_bounded = running.bytes() <= engine.formers.bytes_max();
        if is_bounded { Ok(()) } else { Err(TransactionError::SnapshotTooOld) }
    };
    for body in bodies {
        match Aside::parse(&body).map_err(TreeError::from)? {
            Some(aside) => engine.trees().each_aside(aside, &mut add)?,
            None => add(&body)?,
        }
    }
    Ok(running)
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        self.engine.formers.end(&self.reader);
    }
}

impl std::fmt::Debug for Snapshot<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Snapshot").field("at", &self.at()).finish_non_exhaustive()
    }
}

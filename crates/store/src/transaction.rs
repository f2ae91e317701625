//! One transaction: what it reads, what it changes, and how it ends.
//!
//! Promise: it sees and changes what it would if it ran alone; it is committed whole, or nothing of
//! it is left; its locks are there until it is as safe as was asked for.
//! Never: waits while it has a latch; is on two threads at once.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use holdfast_pages::{PageNumber, Rsn, Slot, What};

use crate::engine::{Durability, Engine, Patience};
use crate::locks::Holder;
use crate::locks::modes::Mode;
use crate::node::body::Body;
use crate::node::large::Stored;
use crate::restart::rollback::{Changes, Savepoint};
use crate::transaction_error::{CommitError, TransactionError};
use crate::tree::Found;
use crate::trees::named_tree::Tree;

mod garbage;
mod redo_only;
mod scan;
mod write;

pub use scan::{Direction, KeyValue, Scan, TwoEnded};
pub(crate) use scan::{Place, Range};

/// A running transaction. Dropping it rolls it back.
#[derive(Debug)]
pub struct Transaction<'s> {
    engine: &'s Engine,
    holder: Holder,
    patience: Patience,
    changes: Changes,
    /// What the changes come to, if it is redo-only: then the pages have none of them.
    private: Option<Private>,
    /// Whether it ever changed a page.
    has_written: bool,
    /// Whether something may be there that nobody needs when it has ended.
    leaves_remains: bool,
    /// Of changes since records were last flushed on its behalf.
    unflushed_bytes: usize,
    /// Memory for a value that is only looked at.
    looked_at: Vec<u8>,
    standing: Standing,
}

/// A value, or none for a key that is deleted.
type Kept = Option<Vec<u8>>;

/// What a transaction has changed, by tree and key.
#[derive(Debug, Default)]
struct Private(BTreeMap<PageNumber, BTreeMap<Vec<u8>, Kept>>);

impl Private {
    /// What the transaction has made of a key, if it has changed it.
    fn get(&self, tree: &Tree, key: &[u8]) -> Option<&Kept> {
        self.0.get(&tree.root)?.get(key)
    }

    fn set(&mut self, root: PageNumber, key: &[u8], value: Option<&[u8]>) {
        self.0.entry(root).or_default().insert(key.to_vec(), value.map(<[u8]>::to_vec));
    }

    /// The keys of a tree that it has changed, in order.
    fn between(
        &self,
        tree: &Tree,
        (low, end): (Bound<&[u8]>, Bound<&[u8]>),
    ) -> impl DoubleEndedIterator<Item = (&Vec<u8>, &Kept)> {
        let keys = self.0.get(&tree.root);
        keys.into_iter().flat_map(move |keys| keys.range::<[u8], _>((low, end)))
    }

    /// What these changes come to.
    fn of(changes: &Changes) -> Private {
        let mut private = Private::default();
        for body in changes.iter().filter_map(|body| Body::parse(body).ok()) {
            match body {
                Body::Insert { spot, value } => private.set(spot.tree, spot.key, Some(value)),
                Body::Ghost(spot) => private.set(spot.tree, spot.key, None),
                _ => unreachable!("no other change is kept"),
            }
        }
        private
    }

    fn keys(&self) -> impl Iterator<Item = (PageNumber, &Vec<u8>, &Kept)> {
        let of_tree = |(root, keys): (&PageNumber, _)| (*root, keys);
        let trees = self.0.iter().map(of_tree);
        trees.flat_map(|(root, keys): (_, &BTreeMap<_, _>)| {
            keys.iter().map(move |(key, value)| (root, key, value))
        })
    }
}

/// What a transaction may still do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Running,
    /// Nothing but be rolled back.
    Doomed,
    Over,
}

/// What a commit returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Where in the stream of records it happened: transactions that depend on one another happened
    /// in this order.
    pub at: Rsn,
}

impl<'s> Transaction<'s> {
    pub(crate) fn begin(engine: &'s Engine, patience: Patience) -> Transaction<'s> {
        let slot = engine.slots.take().expect("fewer than 65536 transactions run at once");
        Transaction {
            engine,
            holder: Holder::new(slot),
            patience,
            changes: Changes::new(),
            private: None,
            has_written: false,
            leaves_remains: false,
            unflushed_bytes: 0,
            looked_at: Vec::new(),
            standing: Standing::Running,
        }
    }

    pub(crate) fn begin_redo_only(engine: &'s Engine, patience: Patience) -> Transaction<'s> {
        let mut transaction = Transaction::begin(engine, patience);
        transaction.private = Some(Private::default());
        transaction
    }

    /// The number by which errors name it: see [`Blocked::by`](crate::Blocked::by). No other
    /// transaction has it as long as this one runs.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.holder.slot().0
    }

    /// Has it be told to be [`TransactionError::Busy`] when it has waited so long for one lock.
    pub fn wait_at_most(&mut self, time: Duration) {
        self.patience = Patience::WaitsFor(time);
    }

    /// The value of a key.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn get(&mut self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>, TransactionError> {
        self.get_locked(tree, key, Mode::READ)
    }

    /// What `look` makes of the value of a key, if there is one. No memory is taken for a value
    /// that lies beside its key, but once in a transaction. `look` runs while nobody waits for it,
    /// and may do what it likes.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn get_with<T>(
        &mut self,
        tree: &Tree,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, TransactionError> {
        self.check_tree(tree)?;
        self.lock(tree.root, key, Mode::READ)?;
        if let Some(kept) = self.private.as_ref().and_then(|private| private.get(tree, key)) {
            return Ok(kept.as_deref().map(look));
        }
        let stored = &mut self.looked_at;
        let pages = self.engine.trees().tree(tree.root);
        let is_there = pages.get(key, |found| {
            let Found::Value(value) = found else { return false };
            value.clone_into(stored);
            true
        })?;
        if !is_there {
            return Ok(None);
        }
        match Stored::of(stored) {
            Ok(Stored::Plain(value)) => Ok(Some(look(value))),
            _ => Ok(Some(look(&pages.load(stored)?))),
        }
    }

    /// The values of several keys, in the order in which they are named. They are read in the order
    /// of keys, so that two who read the same ones never wait for one another.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn get_many<K: AsRef<[u8]>>(
        &mut self,
        tree: &Tree,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>, TransactionError> {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|at| keys[*at].as_ref());
        let mut values = vec![None; keys.len()];
        for at in order {
            values[at] = self.get(tree, keys[at].as_ref())?;
        }
        Ok(values)
    }

    /// The value of a key, which nobody else reads to change it from now on: for those who are
    /// about to.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn get_for_update(
        &mut self,
        tree: &Tree,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, TransactionError> {
        self.get_locked(tree, key, Mode::CHANGE)
    }

    /// Where the transaction stands, to go back there.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        self.changes.savepoint()
    }

    /// Undoes everything since the savepoint. Locks stay. After an error it can be called again.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn roll_back_to(&mut self, savepoint: Savepoint) -> Result<(), TransactionError> {
        self.check()?;
        self.changes.check(savepoint)?;
        if self.private.is_some() {
            self.forget_behind(savepoint);
            return Ok(());
        }
        self.changes.roll_back_to(savepoint, self.holder.slot(), &self.engine.trees())?;
        Ok(())
    }

    /// Commits, and returns when that is as safe as was asked for.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub fn commit(mut self, durability: Durability) -> Result<Committed, CommitError> {
        if self.standing == Standing::Doomed {
            return Err(CommitError::Doomed);
        }
        let is_private = self.private.is_some() && !self.changes.is_empty();
        let mut deleted = Vec::new();
        let (at, settled) = if is_private {
            let end = self.publish()?;
            deleted = self.deleted();
            (end, self.engine.settle(end, durability))
        } else if self.has_written {
            let end = self.engine.put(&What::Commit(self.holder.slot()))?;
            self.free_what_went();
            deleted = self.deleted();
            (end, self.engine.settle(self.free_aside(end), durability))
        } else {
            self.commit_read(durability)
        };
        self.leave();
        self.purge(&deleted);
        settled.map(|()| Committed { at })
    }

    /// Rolls back. If that cannot be done now, for want of room maybe, it is over all the same: its
    /// changes stay locked, and it is tried again later, by itself.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn abort(mut self) -> Result<(), TransactionError> {
        self.roll_back()
    }

    fn commit_read(&self, durability: Durability) -> (Rsn, Result<(), CommitError>) {
        let at = self.engine.stream().next();
        let settled = match durability {
            Durability::Memory => Ok(()),
            Durability::Disk => self.engine.settle_read().map_err(CommitError::from),
        };
        (at, settled)
    }

    fn get_locked(
        &mut self,
        tree: &Tree,
        key: &[u8],
        mode: Mode,
    ) -> Result<Option<Vec<u8>>, TransactionError> {
        self.check_tree(tree)?;
        self.lock(tree.root, key, mode)?;
        self.kept(tree, key).map_or_else(|| self.load(tree, key), Ok)
    }

    /// The value of a key, as its page has it.
    fn load(&self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>, TransactionError> {
        let stored = self.stored(tree, key)?;
        stored.map(|stored| self.value_of(tree, stored)).transpose()
    }

    /// What the leaf says of the value of a key.
    fn stored(&self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>, TransactionError> {
        let stored = self.engine.trees().tree(tree.root).get(key, |found| match found {
            Found::Value(value) => Some(value.to_vec()),
            Found::Ghost | Found::Gap(_) => None,
        })?;
        Ok(stored)
    }

    /// The value that a leaf says this of.
    fn value_of(&self, tree: &Tree, stored: Vec<u8>) -> Result<Vec<u8>, TransactionError> {
        match Stored::of(&stored) {
            Ok(Stored::Plain(value)) if value.len() == stored.len() => Ok(stored),
            _ => Ok(self.engine.trees().tree(tree.root).load(&stored)?),
        }
    }

    fn lock(&mut self, root: PageNumber, key: &[u8], mode: Mode) -> Result<(), TransactionError> {
        let locked = self.engine.lock(&mut self.holder, (root, key), mode, self.patience);
        if matches!(locked, Err(TransactionError::Deadlock(_))) {
            self.standing = Standing::Doomed;
        }
        locked
    }

    fn check(&self) -> Result<(), TransactionError> {
        let is_running = self.standing == Standing::Running;
        if is_running { Ok(()) } else { Err(TransactionError::Doomed) }
    }

    /// Whether the transaction can go on, in this tree.
    fn check_tree(&self, tree: &Tree) -> Result<(), TransactionError> {
        self.check()?;
        let is_ours = tree.store == self.engine.header;
        if is_ours { self.engine.check_tree(tree.root) } else { Err(TransactionError::OtherStore) }
    }

    fn roll_back(&mut self) -> Result<(), TransactionError> {
        let (slot, added) = (self.holder.slot(), self.added());
        if self.has_written
            && let Err(error) = self.changes.abort(slot, &self.engine.trees())
        {
            self.give_up(slot);
            return Err(error.into());
        }
        self.leave();
        self.purge(&added);
        Ok(())
    }

    /// Leaves the rest of a roll back to whoever needs it first.
    fn give_up(&mut self, slot: Slot) {
        let holder = std::mem::replace(&mut self.holder, Holder::new(slot));
        let changes = std::mem::take(&mut self.changes);
        self.engine.losers.add(holder, changes, &self.engine.locks);
        self.standing = Standing::Over;
    }

    /// Lets go of all that it has.
    fn leave(&mut self) {
        self.engine.locks.release(&mut self.holder);
        self.engine.slots.give_back(self.holder.slot());
        self.standing = Standing::Over;
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.standing != Standing::Over {
            // What could not be undone stays locked, and whoever meets it is told why.
            let _ = self.roll_back();
        }
    }
}

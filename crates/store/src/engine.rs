//! What all transactions of a store work on.
//!
//! Promise: whoever is told that a transaction is stable or durable is told the truth, also about
//! what he has only read; a loser stands in nobody's way longer than it takes to roll it back.
//! Never: runs a transaction; opens or closes anything.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_pages::{
    FetchError, Page, PageNumber, Pages, Rsn, StageError, Stream, SyncError, What,
};

use crate::face::config::{Checkpoints, Cleaner};
use crate::face::header::Header;
use crate::locks::blocked::Blocked;
use crate::locks::modes::Mode;
use crate::locks::names::Name;
use crate::locks::{Holder, LockError, Locks};
use crate::pool::allocator::Allocator;
use crate::pool::latches;
use crate::pool::{Below, Pool};
use crate::restart::losers::Losers;
use crate::restart::slots::Slots;
use crate::snapshot::formers::Formers;
use crate::transaction_error::{CommitError, TransactionError};
use crate::tree::TreeError;
use crate::trees::named_tree::Tree;
use crate::trees::{NAMES_ROOT, Trees};

/// Leaves that one step looks at, at most.
const TIDIED_AT_ONCE: usize = 64;

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// That the log has it: it outlives what the log's memory outlives.
    Memory,
    /// That the log's device has it: it outlives a loss of power.
    Disk,
}

/// Whether a transaction waits for locks that others have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Waits,
    /// For so long at one lock.
    WaitsFor(Duration),
    NeverWaits,
}

/// What is open of a store.
pub(crate) struct Engine {
    /// Whose trees these are.
    pub(crate) header: Header,
    pub(crate) pages: Arc<Pages>,
    pub(crate) pool: Pool<Arc<Pages>>,
    pub(crate) numbers: Allocator,
    /// What keys were, for snapshots.
    pub(crate) formers: Formers,
    pub(crate) locks: Locks,
    pub(crate) losers: Losers,
    pub(crate) slots: Slots,
    /// The names of trees that were asked for by them, by their roots.
    pub(crate) named: Mutex<BTreeMap<PageNumber, Arc<str>>>,
    pub(crate) checkpoints: Checkpoints,
    /// How many latches checkpoints have taken.
    pub(crate) surveyed: AtomicU64,
    /// Most bytes of what one transaction has to undo that are in memory.
    pub(crate) undo_bytes_max: usize,
    pub(crate) cleaner: Cleaner,
    /// How many bytes of records begin a cleaning.
    pub(crate) clean_every_bytes: u64,
    /// How many latches cleaning has taken.
    pub(crate) copied: AtomicU64,
    /// Up to where others may have seen transactions that are not durable.
    pub(crate) shown: AtomicU64,
    /// Held by whoever frees pages that were put off, so that who finds none knows that nobody is
    /// at it.
    pub(crate) freeing: Mutex<()>,
    /// Whether there may be trees that were dropped, and whose pages are not free yet.
    pub(crate) has_dropped: AtomicBool,
}

impl Below for Arc<Pages> {
    type Error = FetchError;

    fn load(&self, number: PageNumber, into: &mut Page) -> Result<(), FetchError> {
        Pages::load(self, number, into).map(drop)
    }

    fn cleaned(&self) -> Rsn {
        Pages::cleaned(self)
    }

    fn stable(&self) -> Rsn {
        self.stream().stable()
    }

    fn note(&self, number: PageNumber, rsn: Rsn) {
        Pages::note(self, number, rsn);
    }

    fn settle(&self) -> Result<(), FetchError> {
        Ok(self.follow().map(drop)?)
    }
}

impl Engine {
    pub(crate) fn stream(&self) -> &Stream {
        self.pages.stream()
    }

    pub(crate) fn trees(&self) -> Trees<'_, Arc<Pages>> {
        Trees::new(&self.pool, self.stream(), &self.numbers, &self.formers)
    }

    /// The tree with the names of all others.
    pub(crate) fn names(&self) -> Tree {
        self.tree_of(NAMES_ROOT)
    }

    /// The handle of the tree with this root.
    pub(crate) fn tree_of(&self, root: PageNumber) -> Tree {
        Tree { root, store: self.header }
    }

    /// Whether there is a tree with this root, as far as its handle can be too old.
    pub(crate) fn check_tree(&self, root: PageNumber) -> Result<(), TransactionError> {
        if self.numbers.is_dropped(root) { Err(TransactionError::DroppedTree) } else { Ok(()) }
    }

    /// The handle of the tree of this name, whose root is this. The name is known from then on.
    pub(crate) fn tree_named(&self, name: &str, root: PageNumber) -> Tree {
        let mut named = self.named.lock().expect("nothing panics with names");
        if named.get(&root).is_none_or(|known| **known != *name) {
            named.insert(root, name.into());
        }
        self.tree_of(root)
    }

    /// Where the holder could not have a lock.
    #[cold]
    fn blocked(
        &self,
        holder: &Holder,
        (root, key): (PageNumber, &[u8]),
        mode: Mode,
    ) -> Box<Blocked> {
        let tree = self.named.lock().expect("nothing panics with names").get(&root).cloned();
        let by = self.locks.in_the_way(holder, Name::of(root, key), mode);
        Box::new(Blocked { tree, root, key: key.to_vec(), by })
    }

    /// Adds `mode` to what the holder has on a key of the tree with this root. Rolls back losers
    /// that are in the way.
    pub(crate) fn lock(
        &self,
        holder: &mut Holder,
        (root, key): (PageNumber, &[u8]),
        mode: Mode,
        patience: Patience,
    ) -> Result<(), TransactionError> {
        let name = Name::of(root, key);
        loop {
            let locked = match patience {
                Patience::Waits => self.locks.lock(holder, name, mode),
                Patience::WaitsFor(time) => self.locks.lock_within(holder, name, mode, time),
                Patience::NeverWaits => self.locks.lock_now(holder, name, mode),
            };
            match locked {
                Ok(()) => return Ok(()),
                Err(LockError::Deadlock) => {
                    let blocked = self.blocked(holder, (root, key), mode);
                    return Err(TransactionError::Deadlock(blocked));
                }
                Err(LockError::Busy) => {
                    return Err(TransactionError::Busy(self.blocked(holder, (root, key), mode)));
                }
                Err(LockError::Loser(slot)) => {
                    latches::may_wait();
                    self.losers.roll_back(slot, &self.locks, &self.trees())?;
                }
            }
        }
    }

    /// Rolls a loser back, or frees pages that could not be freed before. False if nothing is left
    /// to do, and nobody else is at it.
    pub(crate) fn undo(&self) -> Result<bool, TreeError<FetchError>> {
        let trees = self.trees();
        if self.losers.step(&self.locks, &trees)? {
            return Ok(true);
        }
        let _alone = self.freeing.lock().expect("nothing panics that frees pages");
        Ok(trees.free_put_off()? || self.tidy()?)
    }

    /// Looks at leaves that were noted, each once. True if one of them had something to go.
    fn tidy(&self) -> Result<bool, TreeError<FetchError>> {
        let mut went = false;
        for _ in 0..self.numbers.untidy_count().min(TIDIED_AT_ONCE) {
            let Some((root, key)) = self.numbers.take_untidy() else { break };
            let is_free = |key: &[u8]| self.locks.is_free(Name::of(root, key));
            match self.trees().tree(root).tidy(&key, is_free) {
                Ok(has_gone) => went |= has_gone,
                // The tree is gone, or damaged, which is told by whoever needs it.
                Err(TreeError::Below(_) | TreeError::Corrupt { .. }) => {}
                Err(error) => {
                    self.numbers.note_untidy(root, &key);
                    return Err(error);
                }
            }
        }
        Ok(went)
    }

    /// Puts one record that is about no page, and returns where it ends.
    pub(crate) fn put(&self, what: &What<'_>) -> Result<Rsn, StageError> {
        self.stream().append(&mut |group| {
            group.put(what);
        })
    }

    /// Returns when what was put before `end` is as safe as was asked for.
    pub(crate) fn settle(&self, end: Rsn, durability: Durability) -> Result<(), CommitError> {
        latches::may_wait();
        let settled = match durability {
            Durability::Memory => self.stream().flush().map(drop).map_err(CommitError::from),
            Durability::Disk => self.stream().sync(end).map_err(CommitError::from),
        };
        if durability == Durability::Memory || settled.is_err() {
            self.shown.fetch_max(end.get(), Ordering::Relaxed);
        }
        settled
    }

    /// Returns when everything is durable that a transaction may have read.
    pub(crate) fn settle_read(&self) -> Result<(), SyncError> {
        latches::may_wait();
        self.stream().sync(Rsn(self.shown.load(Ordering::Relaxed)))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Engine").field("pool", &self.pool).finish_non_exhaustive()
    }
}

//! Trees that nobody has any more go, some leaves at a time.
//!
//! Byte table: FORMAT.md, "Names of trees".
//!
//! Promise: a tree is gone for everybody at once, as durably as a transaction; its pages become
//! free later, while others go on, also after a crash.
//! Never: takes a page of a tree that has a name, or that somebody may still change.

use std::sync::atomic::Ordering;

use holdfast_pages::{FetchError, PageNumber};

use crate::engine::{Durability, Engine, Patience};
use crate::error::{DropTreeError, ReclaimError};
use crate::store::{Store, root_of};
use crate::transaction::{Direction, Transaction};
use crate::transaction_error::{CommitError, TransactionError};
use crate::tree::TreeError;
use crate::trees::named_tree::Tree;
use crate::trees::{DROPPED, dropped_name, root_in, root_value};

/// Leaves that one step clears, at most.
const CLEARED_AT_ONCE: usize = 64;

impl Store {
    /// Drops the tree of this name. False if there is none. Rolls back all losers first, so it has
    /// the store alone; its pages become free while the store is used. A [`Tree`] that somebody has
    /// kept of it is refused from then on.
    ///
    /// # Errors
    /// See [`DropTreeError`].
    pub fn drop_tree(&mut self, name: &str) -> Result<bool, DropTreeError> {
        self.unname(name, None)
    }

    /// Makes the tree of this name one with nothing in it, however much there was. None if there is
    /// no such tree. As [`Store::drop_tree`], of the old one.
    ///
    /// # Errors
    /// See [`DropTreeError`].
    pub fn truncate_tree(&mut self, name: &str) -> Result<Option<Tree>, DropTreeError> {
        let root = self.work.engine.trees().create();
        let root = root.map_err(|error| DropTreeError::Transaction(error.into()))?;
        let was_there = self.unname(name, Some(root));
        if !matches!(was_there, Ok(true)) {
            // It is nobody's, now or when it is freed.
            let _ = self.work.engine.trees().tree(root).free_page(root);
        }
        Ok(was_there?.then(|| self.work.engine.tree_named(name, root)))
    }

    /// Has a name lead to another root or to none, and notes that the old tree is to go.
    fn unname(&mut self, name: &str, new: Option<PageNumber>) -> Result<bool, DropTreeError> {
        let engine = &self.work.engine;
        engine.undo_whole().map_err(|error| match error {
            ReclaimError::Undo(error) => DropTreeError::Undo(error),
            _ => DropTreeError::Running,
        })?;
        let (names, mut one) = (engine.names(), self.begin());
        let Some(value) = one.get_for_update(&names, name.as_bytes())? else { return Ok(false) };
        let root = root_of(&value)?;
        match new {
            Some(new) => one.put(&names, name.as_bytes(), &root_value(new))?,
            None => drop(one.delete(&names, name.as_bytes())?),
        }
        one.insert(&names, &dropped_name(root), &root_value(root))?;
        one.commit(Durability::Memory).map_err(DropTreeError::Commit)?;
        engine.numbers.drop_tree(root);
        engine.has_dropped.store(true, Ordering::Relaxed);
        Ok(true)
    }
}

impl Engine {
    /// Frees some pages of a tree that was dropped. False if there is none, or somebody is at it.
    /// Where a page is damaged it is not tried again before the next drop, or open.
    pub(crate) fn clear_dropped(&self) -> Result<bool, TransactionError> {
        if !self.has_dropped.load(Ordering::Relaxed) {
            return Ok(false);
        }
        self.clear_some().inspect_err(|error| {
            let is_damage = |error: &TransactionError| {
                matches!(error, TransactionError::Page(_) | TransactionError::Corrupt { .. })
            };
            self.has_dropped.fetch_and(!is_damage(error), Ordering::Relaxed);
        })
    }

    fn clear_some(&self) -> Result<bool, TransactionError> {
        // Its locks tell of a drop that is not committed.
        let mut one = Transaction::begin(self, Patience::NeverWaits);
        let names = self.names();
        // Before: whoever notes that there is one may do so at once.
        self.has_dropped.store(false, Ordering::Relaxed);
        let is_made = |value: &[u8]| root_in(value).is_ok_and(|root| self.numbers.is_loading(root));
        let found = one.scan(&names, &[DROPPED][..].., Direction::Up).find(
            // What is being made has such a name, too.
            |found| !found.as_ref().is_ok_and(|(_, value)| is_made(value)),
        );
        if found.is_some() {
            self.has_dropped.store(true, Ordering::Relaxed);
        }
        let (name, value) = match found {
            None => return Ok(false),
            Some(Err(TransactionError::Busy(_))) => return Ok(false),
            Some(found) => found?,
        };
        let root =
            root_in(&value).map_err(|why| TransactionError::Corrupt { page: names.root, why })?;
        if !self.clear(root)? {
            return Ok(true);
        }
        match one.delete(&names, &name) {
            Err(TransactionError::Busy(_)) => return Ok(false),
            deleted => drop(deleted?),
        }
        match one.commit(Durability::Memory) {
            Ok(_) | Err(CommitError::NotDurable(_)) => {}
            Err(CommitError::NotDone(error)) => return Err(error),
            Err(CommitError::Poisoned(poisoned)) => {
                return Err(TransactionError::Poisoned(poisoned));
            }
            Err(CommitError::Doomed | CommitError::TooLarge) => return Ok(false),
        }
        // Nobody finds it any more.
        self.trees().tree(root).free_page(root)?;
        Ok(true)
    }

    /// Takes everything out of some leaves of a tree that nobody uses. True if it was all.
    fn clear(&self, root: PageNumber) -> Result<bool, TreeError<FetchError>> {
        let (tree, mut from) = (self.trees().tree(root), Vec::new());
        for _ in 0..CLEARED_AT_ONCE {
            match tree.clear_leaf(&from)? {
                Some(next) => from = next,
                None => return Ok(true),
            }
        }
        Ok(false)
    }
}

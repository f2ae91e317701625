//! How a transaction changes keys.
//!
//! Promise: a key is locked before it is looked for, and the gap that a new one comes into while
//! its leaf is latched; what has changed is remembered, so that it can be undone.
//! Never: waits with a latch; reads a value to change it without the lock for that.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use holdfast_pages::{PageNumber, Pages};

use super::Transaction;
use crate::locks::modes::{GapMode, Mode};
use crate::locks::names::Name;
use crate::node::body::{BODY_BYTES_MAX, Body};
use crate::node::large::{Stored, plain};
use crate::transaction_error::TransactionError;
use crate::tree::{By, Changed, FLUSH_EVERY_BYTES};
use crate::trees::named_tree::Tree;
use crate::{pool::latches, tree};

impl<'s> Transaction<'s> {
    /// Gives a key a value, whether it is there or not.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<(), TransactionError> {
        if self.is_redo_only() {
            self.prepare(tree, key)?;
            return self.keep_value(tree, key, Some(value));
        }
        if !self.update(tree, key, |old| value.clone_into(old))? {
            self.insert_locked(tree, key, value)?;
        }
        Ok(())
    }

    /// Adds a key. False if it is there already; then nothing has changed.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn insert(
        &mut self,
        tree: &Tree,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool, TransactionError> {
        self.prepare(tree, key)?;
        if self.is_redo_only() {
            return self.keep(tree, key, |old| old.is_none().then(|| Some(value.to_vec())));
        }
        self.insert_locked(tree, key, value)
    }

    /// Deletes a key. False if it is not there.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn delete(&mut self, tree: &Tree, key: &[u8]) -> Result<bool, TransactionError> {
        self.prepare(tree, key)?;
        if self.is_redo_only() {
            return self.keep(tree, key, |old| old.map(|_| None));
        }
        let changed = self.pages_of(tree).ghost(key, self.by())?;
        self.leaves_remains = true;
        Ok(self.take(changed))
    }

    /// Changes the value of a key. False if it is not there. `change` may be called again, with the
    /// same value, and must not use the store. If it panics nothing has changed, and the
    /// transaction can go on.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn update(
        &mut self,
        tree: &Tree,
        key: &[u8],
        mut change: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool, TransactionError> {
        self.prepare(tree, key)?;
        if self.is_redo_only() {
            return self.keep(tree, key, |old| {
                old.map(|mut value| {
                    change(&mut value);
                    Some(value)
                })
            });
        }
        let mut panicked = None;
        let changed = self.pages_of(tree).replace(key, self.by(), |old| {
            let Ok(Stored::Plain(old)) = Stored::of(old) else { return None };
            let mut value = old.to_vec();
            // Nobody else's latch must be poisoned by it.
            let made = catch_unwind(AssertUnwindSafe(|| change(&mut value)));
            if let Err(panic) = made {
                panicked = Some(panic);
                return None;
            }
            let stored = match plain(&value)? {
                Cow::Owned(stored) => Some(stored),
                Cow::Borrowed(_) => None,
            };
            Some(stored.unwrap_or(value))
        });
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
        match changed? {
            Changed::Exists => self.update_large(tree, key, change),
            changed => Ok(self.take(changed)),
        }
    }

    /// [`Transaction::update`], for a value that is or becomes too large for a leaf.
    fn update_large(
        &mut self,
        tree: &Tree,
        key: &[u8],
        mut change: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool, TransactionError> {
        let Some(stored) = self.stored(tree, key)? else { return Ok(false) };
        let mut value = self.value_of(tree, stored)?;
        change(&mut value);
        self.leaves_remains = true;
        self.write(tree, &value, |this, stored| {
            let new = |_: &[u8]| Some(stored.to_vec());
            Ok(this.pages_of(tree).replace(key, this.by(), new)?)
        })
    }

    /// Adds a key that is locked.
    fn insert_locked(
        &mut self,
        tree: &Tree,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool, TransactionError> {
        self.write(tree, value, |this, stored| this.insert_stored(tree, key, stored))
    }

    /// Gives a value pages of its own if it needs some, and has a leaf tell of it.
    fn write(
        &mut self,
        tree: &Tree,
        value: &[u8],
        mut tell: impl FnMut(&mut Self, &[u8]) -> Result<Changed, TransactionError>,
    ) -> Result<bool, TransactionError> {
        let pages = self.pages_of(tree);
        let stored = pages.store(value)?;
        let told = tell(self, &stored);
        if let (Some(large), false) = (Stored::large_of(&stored), is_done(&told)) {
            // Nobody knows of them, now or when they are freed.
            let _ = pages.free(large);
        }
        self.unflushed_bytes += value.len();
        Ok(self.take(told?))
    }

    fn insert_stored(
        &mut self,
        tree: &Tree,
        key: &[u8],
        stored: &[u8],
    ) -> Result<Changed, TransactionError> {
        let (pages, by, name) = (self.pages_of(tree), self.by(), Name::of(tree.root, key));
        loop {
            let changed = pages
                .insert(key, stored, by, |gap| self.try_lock_gap(Name::of(tree.root, gap), name))?;
            let Changed::Wait(gap) = changed else { return Ok(changed) };
            self.lock_gap(tree.root, &gap, key)?;
        }
    }

    /// Locks the gap that a key comes into. Who has read the gap has then read both its parts.
    pub(super) fn try_lock_gap(&mut self, gap: Name, key: Name) -> bool {
        let locks = &self.engine.locks;
        locks.try_lock(&mut self.holder, gap, Mode::INSERT)
            && (!self.has_read(gap) || locks.try_lock(&mut self.holder, key, Mode::READ_GAP))
    }

    /// [`Transaction::try_lock_gap`], but waits.
    pub(super) fn lock_gap(
        &mut self,
        root: PageNumber,
        gap: &[u8],
        key: &[u8],
    ) -> Result<(), TransactionError> {
        self.lock(root, gap, Mode::INSERT)?;
        let has_read = self.has_read(Name::of(root, gap));
        if has_read { self.lock(root, key, Mode::READ_GAP) } else { Ok(()) }
    }

    fn has_read(&self, gap: Name) -> bool {
        self.engine.locks.mode_of(&self.holder, gap).gap == GapMode::Both
    }

    /// Sees to everything that a change of a key needs.
    fn prepare(&mut self, tree: &Tree, key: &[u8]) -> Result<(), TransactionError> {
        self.check_tree(tree)?;
        if self.is_redo_only() {
            self.changes.check_room(BODY_BYTES_MAX)?;
        } else {
            self.put_aside_if_many()?;
        }
        if self.unflushed_bytes >= FLUSH_EVERY_BYTES {
            latches::may_wait();
            self.engine.stream().flush()?;
            self.unflushed_bytes = 0;
        }
        self.lock(tree.root, key, Mode::CHANGE)
    }

    /// Has its changes lie elsewhere if another one might be too much for memory.
    fn put_aside_if_many(&mut self) -> Result<(), TransactionError> {
        let bytes = self.changes.bytes();
        if bytes + BODY_BYTES_MAX > self.engine.undo_bytes_max {
            latches::may_wait();
            self.changes.put_aside(self.holder.slot(), &self.engine.trees())?;
            self.unflushed_bytes += bytes;
        }
        Ok(())
    }

    /// Remembers what has changed. False if nothing has.
    fn take(&mut self, changed: Changed) -> bool {
        let Changed::Done(body) = changed else { return false };
        self.leaves_remains |= matches!(Body::parse(&body), Ok(Body::Revive { .. }));
        self.changes.push(&body);
        self.has_written = true;
        self.unflushed_bytes += body.len();
        true
    }

    fn is_redo_only(&self) -> bool {
        self.private.is_some()
    }

    fn by(&self) -> By {
        By::Update(self.holder.slot())
    }

    fn pages_of(&self, tree: &Tree) -> tree::Tree<'s, Arc<Pages>> {
        self.engine.trees().tree(tree.root)
    }
}

fn is_done(told: &Result<Changed, TransactionError>) -> bool {
    matches!(told, Ok(Changed::Done(_)))
}

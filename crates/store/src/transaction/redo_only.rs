//! Transactions that keep what they change to themselves until they commit.
//!
//! Promise: pages have nothing of it before the commit, and all of it after: in one group of
//! records, which tells no old values, since nobody ever undoes it.
//! Never: leaves a loser behind; makes a transaction see less than what it has changed.

use holdfast_pages::{PageNumber, Rsn, varint};

use super::{Kept, Private, Standing, Transaction};
use crate::locks::names::Name;
use crate::node::KEY_BYTES_MAX;
use crate::node::body::{Body, Spot};
use crate::node::large::{LARGE_VALUE_BYTES_MAX, Large, Stored};
use crate::restart::rollback::Savepoint;
use crate::transaction_error::TransactionError;
use crate::tree::{Wanted, WriteBatch};
use crate::trees::named_tree::Tree;

/// Bytes of a change besides its key and its value.
const CHANGE_BYTES: usize = 8 * varint::BYTES_MAX;

impl Transaction<'_> {
    /// What the transaction has made of a key, if it keeps that to itself.
    pub(super) fn kept(&self, tree: &Tree, key: &[u8]) -> Option<Kept> {
        self.private.as_ref()?.get(tree, key).cloned()
    }

    /// Changes what a key is for this transaction: `change` says what it becomes, or that it stays
    /// as it is. Whether it changes.
    pub(super) fn keep(
        &mut self,
        tree: &Tree,
        key: &[u8],
        change: impl FnOnce(Kept) -> Option<Kept>,
    ) -> Result<bool, TransactionError> {
        let old = self.see(tree, key)?;
        let Some(new) = change(old) else { return Ok(false) };
        self.keep_value(tree, key, new.as_deref())?;
        Ok(true)
    }

    /// Makes a key this, which is locked.
    pub(super) fn keep_value(
        &mut self,
        tree: &Tree,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), TransactionError> {
        let value_bytes = value.map_or(0, <[u8]>::len);
        if key.len() > KEY_BYTES_MAX {
            return Err(TransactionError::KeyTooLarge);
        }
        if value_bytes > LARGE_VALUE_BYTES_MAX {
            return Err(TransactionError::ValueTooLarge);
        }
        self.changes.check_room(CHANGE_BYTES + key.len() + value_bytes)?;
        let (spot, mut body) = (Spot { tree: tree.root, place: 0, key }, Vec::new());
        match value {
            Some(value) => Body::Insert { spot, value }.put(&mut body),
            None => Body::Ghost(spot).put(&mut body),
        }
        self.changes.push(&body);
        self.leaves_remains |= value.is_none();
        if let Some(private) = &mut self.private {
            private.set(tree.root, key, value);
        }
        Ok(())
    }

    /// Forgets what came after a savepoint, which is not gone.
    pub(super) fn forget_behind(&mut self, savepoint: Savepoint) {
        self.changes.forget_behind(savepoint);
        self.private = Some(Private::of(&self.changes));
    }

    /// Makes the pages what the transaction has kept, and returns where the records of that end.
    pub(super) fn publish(&mut self) -> Result<Rsn, TransactionError> {
        if self.standing != Standing::Running {
            return Err(TransactionError::Doomed);
        }
        let private = self.private.take().unwrap_or_default();
        let mut large = Vec::new();
        let published = self.publish_all(&private, &mut large);
        let (published, gone) = match published {
            Ok((end, gone)) => (Ok(end), gone),
            Err(error) => (Err(error), large),
        };
        for (root, large) in gone {
            // They are nobody's, now or when they are freed.
            let _ = self.engine.trees().tree(root).free(large);
        }
        published
    }

    /// The same. Puts into `large` what has begun, and returns also which large values have gone.
    fn publish_all(
        &mut self,
        private: &Private,
        large: &mut Vec<(PageNumber, Large)>,
    ) -> Result<(Rsn, Vec<(PageNumber, Large)>), TransactionError> {
        let (trees, mut wanted) = (self.engine.trees(), Vec::new());
        for (tree, key, value) in private.keys() {
            let stored = value.as_deref().map(|value| trees.tree(tree).store(value));
            let stored = stored.transpose()?;
            let begun = stored.as_deref().and_then(Stored::large_of);
            large.extend(begun.map(|large| (tree, large)));
            wanted.push(Wanted { tree, key, stored });
        }
        loop {
            let together = trees.change_together(&wanted, |tree, gap, key| {
                self.try_lock_gap(Name::of(tree, gap), Name::of(tree, key))
            })?;
            match together {
                WriteBatch::Done { end, gone } => return Ok((end, gone)),
                WriteBatch::Wait { tree, gap, key } => {
                    self.lock_gap(tree, &gap, &key)?;
                }
            }
        }
    }

    /// The value of a key, which is locked, as this transaction sees it.
    fn see(&self, tree: &Tree, key: &[u8]) -> Result<Kept, TransactionError> {
        match self.kept(tree, key) {
            Some(kept) => Ok(kept),
            None => self.load(tree, key),
        }
    }
}

#[cfg(test)]
mod tests;

//! What a transaction leaves behind that nobody needs: ghosts, and pages of large values.
//!
//! Promise: it goes once nobody can want it back, without anybody waiting for that.
//! Never: fails a transaction. What cannot go now goes later: ghosts with the next that leave their
//! leaf, pages when there is room.

use holdfast_pages::{PageNumber, Rsn};

use super::Transaction;
use crate::locks::names::Name;
use crate::node::body::Body;
use crate::transaction_error::TransactionError;

/// A key of a tree, by the tree's root.
pub(super) type KeyOfTree = (PageNumber, Vec<u8>);

impl Transaction<'_> {
    /// Frees the pages of values that went, once the transaction is committed. It still has their
    /// keys locked.
    pub(super) fn free_what_went(&self) {
        if self.leaves_remains {
            let trees = self.engine.trees();
            self.each_change(|body| drop(trees.let_go(body)));
        }
    }

    /// The keys that it has deleted, some of which it may have added again.
    pub(super) fn deleted(&self) -> Vec<KeyOfTree> {
        if self.leaves_remains { self.keys(|body| matches!(body, Body::Ghost(_))) } else { vec![] }
    }

    /// Frees the pages in which its changes lie, once it is committed, which its record says that
    /// ends at `end`. Returns what has to be as safe as that, so that these pages are nobody's.
    pub(super) fn free_aside(&self, end: Rsn) -> Rsn {
        let Some(aside) = self.changes.aside() else { return end };
        self.engine.trees().free_aside(aside);
        self.engine.stream().next()
    }

    /// Shows every change that is not undone, wherever it lies. One that cannot be had is left out.
    fn each_change(&self, mut each: impl FnMut(&[u8])) {
        self.changes.iter().for_each(&mut each);
        if let Some(aside) = self.changes.aside() {
            let _ = self.engine.trees().each_aside(aside, |body| {
                each(body);
                Ok::<_, TransactionError>(())
            });
        }
    }

    /// The keys that it has added, which are ghosts when that is undone, or ghosts again.
    pub(super) fn added(&self) -> Vec<KeyOfTree> {
        let which = |body: &Body<'_>| matches!(body, Body::Insert { .. } | Body::Revive { .. });
        if self.has_written { self.keys(which) } else { vec![] }
    }

    fn keys(&self, which: impl Fn(&Body<'_>) -> bool) -> Vec<KeyOfTree> {
        let mut keys = Vec::new();
        self.each_change(|body| {
            let body = Body::parse(body).ok().filter(&which);
            let spot = body.and_then(|body| body.spot());
            keys.extend(spot.map(|spot| (spot.tree, spot.key.to_vec())));
        });
        keys
    }

    /// Takes ghosts out of the leaves of these keys, where nobody has a lock on them any more.
    pub(super) fn purge(&self, keys: &[KeyOfTree]) {
        for (root, key) in keys {
            let is_free = |key: &[u8]| self.engine.locks.is_free(Name::of(*root, key));
            let _ = self.engine.trees().tree(*root).purge(key, is_free);
        }
    }
}

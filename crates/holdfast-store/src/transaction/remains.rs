//! What a transaction leaves behind that nobody needs: ghosts, and pages of large values.
//!
//! Promise: it goes once nobody can want it back, without anybody waiting for that.
//! Never: fails a transaction. What cannot go now goes later: ghosts with the next that leave their
//! leaf, pages when there is room.

use holdfast_pages::PageNumber;

use super::Transaction;
use crate::body::Body;
use crate::names::Name;

/// A key of a tree, by the tree's root.
pub(super) type KeyOfTree = (PageNumber, Vec<u8>);

impl Transaction<'_> {
    /// Frees the pages of values that went, once the transaction is committed. It still has their
    /// keys locked.
    pub(super) fn free_what_went(&self) {
        if self.leaves_remains {
            let trees = self.engine.trees();
            self.changes.iter().for_each(|body| drop(trees.let_go(body)));
        }
    }

    /// The keys that it has deleted, some of which it may have added again.
    pub(super) fn deleted(&self) -> Vec<KeyOfTree> {
        if self.leaves_remains { self.keys(|body| matches!(body, Body::Ghost(_))) } else { vec![] }
    }

    /// The keys that it has added, which are ghosts when that is undone, or ghosts again.
    pub(super) fn added(&self) -> Vec<KeyOfTree> {
        let which = |body: &Body<'_>| matches!(body, Body::Insert { .. } | Body::Revive { .. });
        if self.has_written { self.keys(which) } else { vec![] }
    }

    fn keys(&self, which: impl Fn(&Body<'_>) -> bool) -> Vec<KeyOfTree> {
        let bodies = self.changes.iter().filter_map(|body| Body::parse(body).ok());
        let spots = bodies.filter(which).filter_map(|body| body.spot());
        spots.map(|spot| (spot.tree, spot.key.to_vec())).collect()
    }

    /// Takes ghosts out of the leaves of these keys, where nobody has a lock on them any more.
    pub(super) fn purge(&self, keys: &[KeyOfTree]) {
        for (root, key) in keys {
            let is_free = |key: &[u8]| self.engine.locks.is_free(Name::of(*root, key));
            let _ = self.engine.trees().tree(*root).purge(key, is_free);
        }
    }
}

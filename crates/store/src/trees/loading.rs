//! A tree is made of keys that come in order.
//!
//! Promise: the tree has its name when all of it is there, as one transaction, and not before;
//! what an error leaves of it becomes free by itself, and what a crash does, but for large values
//! that no leaf tells of yet. Of each leaf one image reaches the log, and little else.
//! Never: changes a tree that somebody has.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_pages::{FetchError, PageNumber, Pages};

use crate::engine::{Durability, Engine};
use crate::error::LoadTreeError;
use crate::node::{KEY_BYTES_MAX, NODE_BYTES, SLOT_BYTES, Shape, heap_bytes};
use crate::store::Store;
use crate::transaction_error::TransactionError;
use crate::tree::{self, FLUSH_EVERY_BYTES, Loaded, TreeError};
use crate::trees::named_tree::Tree;
use crate::trees::{dropped_name, root_value};

impl Store {
    /// Makes a tree of this name with these keys, which come in ascending order, each once. Its
    /// leaves are filled to so many percent, 100 at most, and have one key at least: fill them less
    /// if keys will come between these. That is far faster than transactions, and any amount.
    ///
    /// The tree is there when this returns, and then as safe as was asked for. If the process ends
    /// before, there is none, and what was made of it becomes free after the next open; but for
    /// large values of the leaf that was made then, which [`Store::reclaim`] frees.
    ///
    /// # Errors
    /// See [`LoadTreeError`]; there is no such tree then, and all that was made of it becomes free.
    pub fn load_tree<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        name: &str,
        fill_percent: u8,
        items: impl IntoIterator<Item = (K, V)>,
        durability: Durability,
    ) -> Result<Tree, LoadTreeError> {
        if self.find_tree(name)?.is_some() {
            return Err(LoadTreeError::Exists);
        }
        let engine = &*self.work.engine;
        let root = engine.trees().create().map_err(TransactionError::from)?;
        let _loading = Loading::begin(engine, root);
        // As long as it has no other name, it is one that is to go.
        let (names, mut one) = (engine.names(), self.begin());
        one.insert(&names, &dropped_name(root), &root_value(root))?;
        one.commit(Durability::Memory)?;
        let mut loader = Loader::new(engine, root, fill_percent);
        for (key, value) in items {
            loader.push(key.as_ref(), value.as_ref())?;
        }
        loader.finish()?;
        let mut one = self.begin();
        if !one.insert(&names, name.as_bytes(), &root_value(root))? {
            return Err(LoadTreeError::Exists);
        }
        one.delete(&names, &dropped_name(root))?;
        one.commit(durability)?;
        Ok(engine.tree_of(root))
    }
}

/// While this lives nobody frees the pages of a tree.
struct Loading<'a> {
    engine: &'a Engine,
    root: PageNumber,
}

impl<'a> Loading<'a> {
    fn begin(engine: &'a Engine, root: PageNumber) -> Loading<'a> {
        engine.numbers.begin_loading(root);
        Loading { engine, root }
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.engine.numbers.end_loading(self.root);
        self.engine.has_dropped.store(true, Ordering::Relaxed);
    }
}

/// Who fills one leaf after the other.
struct Loader<'a> {
    engine: &'a Engine,
    tree: tree::Tree<'a, Arc<Pages>>,
    /// What a leaf takes at most, if it has more than one key.
    fill_bytes: usize,
    /// Where the leaf begins.
    low: Vec<u8>,
    /// What goes there: it fits if the leaf ends with the last of it.
    entries: Vec<Loaded>,
    /// Bytes of that, with whole keys.
    bytes: usize,
    unflushed_bytes: usize,
}

impl<'a> Loader<'a> {
    fn new(engine: &'a Engine, root: PageNumber, fill_percent: u8) -> Loader<'a> {
        let fill_bytes = NODE_BYTES * usize::from(fill_percent.min(100)) / 100;
        let tree = engine.trees().tree(root);
        let (low, entries, bytes) = (Vec::new(), Vec::new(), 0);
        Loader { engine, tree, fill_bytes, low, entries, bytes, unflushed_bytes: 0 }
    }

    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), LoadTreeError> {
        if key.len() > KEY_BYTES_MAX {
            return Err(TransactionError::KeyTooLarge.into());
        }
        if self.entries.last().is_some_and(|(last, _)| key <= &last[..]) {
            return Err(LoadTreeError::NotSorted { key: key.to_vec() });
        }
        let stored = self.tree.store(value).map_err(TransactionError::from)?.into_owned();
        self.unflushed_bytes += value.len();
        let bytes = entry_bytes(key, &stored);
        let is_full = self.leaf_bytes(Some(key), (1, bytes)) > self.fill_bytes;
        if !self.entries.is_empty() && is_full {
            self.end_leaf(key).inspect_err(|_| self.tree.let_stored_go(&stored))?;
        }
        self.bytes += bytes;
        self.entries.push((key.to_vec(), stored));
        Ok(())
    }

    /// Bytes of the leaf with so many entries more, if it ends there.
    fn leaf_bytes(&self, high: Option<&[u8]>, (more, bytes): (usize, usize)) -> usize {
        let shape = Shape { level: 0, low: &self.low, high, foster: None };
        let count = self.entries.len() + more;
        shape.bytes() + self.bytes + bytes - count * shape.prefix().len()
    }

    /// Fills the leaf, and begins the next with this key.
    fn end_leaf(&mut self, next: &[u8]) -> Result<(), LoadTreeError> {
        if self.leaf_bytes(Some(next), (0, 0)) > NODE_BYTES {
            // What its keys have in common is less than it was.
            self.give_last_away()?;
        }
        self.fill(next)
    }

    /// Lets the last key begin a leaf of its own.
    fn give_last_away(&mut self) -> Result<(), LoadTreeError> {
        let (key, stored) = self.entries.pop().expect("one key fits alone");
        self.bytes -= entry_bytes(&key, &stored);
        self.fill(&key).inspect_err(|_| self.tree.let_stored_go(&stored))?;
        self.bytes = entry_bytes(&key, &stored);
        self.entries.push((key, stored));
        Ok(())
    }

    fn fill(&mut self, next: &[u8]) -> Result<(), LoadTreeError> {
        let filled = self.tree.fill_leaf(&self.low, &self.entries, next);
        filled.map_err(TransactionError::from)?;
        self.unflushed_bytes += self.bytes;
        self.low = next.to_vec();
        self.bytes = 0;
        self.entries.clear();
        if self.unflushed_bytes >= FLUSH_EVERY_BYTES {
            let flushed = self.engine.stream().flush();
            flushed.map_err(TransactionError::from)?;
            self.unflushed_bytes = 0;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), LoadTreeError> {
        if self.leaf_bytes(None, (0, 0)) > NODE_BYTES {
            self.give_last_away()?;
        }
        let filled: Result<(), TreeError<FetchError>> =
            self.tree.fill_last_leaf(&self.low, &self.entries);
        filled.map_err(TransactionError::from)?;
        self.entries.clear();
        Ok(())
    }
}

impl Drop for Loader<'_> {
    /// Frees what lies elsewhere of values that no leaf tells of, since one could not be made, or
    /// whoever brings the keys has panicked.
    fn drop(&mut self) {
        self.entries.iter().for_each(|(_, stored)| self.tree.let_stored_go(stored));
    }
}

/// Bytes that an entry takes with its whole key.
fn entry_bytes(key: &[u8], stored: &[u8]) -> usize {
    SLOT_BYTES + heap_bytes(key.len(), stored.len())
}

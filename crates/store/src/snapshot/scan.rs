//! Keys of a tree in their order, as they were where a snapshot stands.
//!
//! Promise: no key is missed or met twice, whatever becomes of the leaves meanwhile; there is never
//! more in memory than one leaf has, and one value.
//! Never: locks a key; keeps a latch from one call to the next.

use std::collections::VecDeque;
use std::ops::RangeBounds;

use super::Snapshot;
use crate::transaction::{Direction, KeyValue, Place, Range};
use crate::transaction_error::TransactionError;
use crate::trees::named_tree::Tree;

/// The keys of a range, as they were. Ends with the first error.
#[derive(Debug)]
pub struct SnapshotScan<'v, 's> {
    snapshot: &'v Snapshot<'s>,
    tree: Tree,
    range: Range,
    direction: Direction,
    /// Where it goes on; none if it is through.
    next: Option<Place>,
    /// What was found and not shown: keys, and what their leaf said of their values.
    found: VecDeque<KeyValue>,
}

impl<'s> Snapshot<'s> {
    /// The keys of a range, with the values that they had, in order. In memory it has what one page
    /// has, and one value.
    pub fn scan<K: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        range: impl RangeBounds<K>,
        direction: Direction,
    ) -> SnapshotScan<'_, 's> {
        SnapshotScan::new(self, *tree, Range::of(&range), direction)
    }

    /// The keys that begin with these bytes, with the values that they had, in order.
    pub fn scan_prefix(
        &self,
        tree: &Tree,
        prefix: &[u8],
        direction: Direction,
    ) -> SnapshotScan<'_, 's> {
        SnapshotScan::new(self, *tree, Range::of_prefix(prefix), direction)
    }
}

impl<'v, 's> SnapshotScan<'v, 's> {
    pub(super) fn new(
        snapshot: &'v Snapshot<'s>,
        tree: Tree,
        range: Range,
        direction: Direction,
    ) -> SnapshotScan<'v, 's> {
        let (next, found) = (range.begin(direction), VecDeque::new());
        SnapshotScan { snapshot, tree, range, direction, next, found }
    }

    /// The next key, and its value.
    fn show(&mut self) -> Result<Option<KeyValue>, TransactionError> {
        while self.found.is_empty()
            && let Some(place) = self.next.take()
        {
            self.next = self.visit(&place)?;
        }
        let Some((key, stored)) = self.found.pop_front() else { return Ok(None) };
        let value = self.snapshot.value_of(&self.tree, stored)?;
        Ok(Some((key, value)))
    }

    /// Visits one leaf, and returns where to go on.
    fn visit(&mut self, place: &Place) -> Result<Option<Place>, TransactionError> {
        let SnapshotScan { snapshot, tree, range, direction, found, .. } = self;
        snapshot.check_tree(tree)?;
        let mut read = Ok(());
        let pages = snapshot.engine.trees().tree(tree.root);
        let end = pages.leaf_as_of(place.seek(), &snapshot.reader, |key, former| {
            let is_behind = match direction {
                Direction::Up => range.ends_before(key),
                Direction::Down => key < &range.low[..],
            };
            if is_behind {
                return false;
            }
            match snapshot.committed(tree, key, former) {
                Ok(stored) => found.extend(stored.map(|stored| (key.to_vec(), stored))),
                Err(error) => read = Err(error),
            }
            read.is_ok()
        });
        let end = snapshot.told(end.map_err(TransactionError::from))?;
        read?;
        Ok(range.behind(end, *direction))
    }
}

impl Iterator for SnapshotScan<'_, '_> {
    type Item = Result<KeyValue, TransactionError>;

    fn next(&mut self) -> Option<Result<KeyValue, TransactionError>> {
        self.show()
            .inspect_err(|_| {
                self.next = None;
                self.found.clear();
            })
            .transpose()
    }
}

//! Keys of a range from both of its ends, and from wherever somebody goes on.
//!
//! Promise: each key of the range is shown once, from one end or the other, unless it was passed
//! by; what was looked at stays so until the transaction ends.
//! Never: goes back.

use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

use super::{
    Direction, FOUND_AT_FIRST, FOUND_AT_ONCE_MAX, KeyValue, Transaction, Tree, Unread,
    end_of_prefix,
};
use crate::transaction_error::TransactionError;

/// The keys of a range, which become fewer from both ends. Ends with the first error, unless that
/// is [`TransactionError::Busy`].
#[derive(Debug)]
pub struct TwoEnded<'t, 's> {
    transaction: &'t mut Transaction<'s>,
    tree: Tree,
    /// Between what both ends have found: what is not found yet.
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    /// Whether nothing is left there.
    is_through: bool,
    /// What was found and not shown, each in the order in which its end shows it.
    front: VecDeque<(Vec<u8>, Unread)>,
    back: VecDeque<(Vec<u8>, Unread)>,
    /// How many are looked for next.
    wanted: usize,
}

impl<'s> Transaction<'s> {
    /// The keys of a range, with their values, from either end: `next` goes up and `next_back`
    /// down, until they meet. What it has read of the tree is locked as far as both have got.
    pub fn range<'t, K: AsRef<[u8]>>(
        &'t mut self,
        tree: &Tree,
        range: impl RangeBounds<K>,
    ) -> TwoEnded<'t, 's> {
        let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        TwoEnded {
            transaction: self,
            tree: *tree,
            low: owned(range.start_bound()),
            high: owned(range.end_bound()),
            is_through: false,
            front: VecDeque::new(),
            back: VecDeque::new(),
            wanted: FOUND_AT_FIRST,
        }
    }

    /// [`Transaction::range`] of the keys that begin with these bytes.
    pub fn range_prefix<'t>(&'t mut self, tree: &Tree, prefix: &[u8]) -> TwoEnded<'t, 's> {
        let end = end_of_prefix(prefix);
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.range::<&[u8]>(tree, (Bound::Included(prefix), end))
    }
}

impl TwoEnded<'_, '_> {
    /// Passes the keys below this one: `next` shows the first that is not.
    pub fn seek(&mut self, key: &[u8]) {
        let below = self.front.partition_point(|(found, _)| &found[..] < key);
        self.front.drain(..below);
        if !self.front.is_empty() {
            return;
        }
        while self.back.back().is_some_and(|(found, _)| &found[..] < key) {
            self.back.pop_back();
        }
        let is_passed = match &self.low {
            Bound::Unbounded => false,
            Bound::Included(low) | Bound::Excluded(low) => &low[..] >= key,
        };
        if !is_passed {
            self.low = Bound::Included(key.to_vec());
        }
    }

    /// Passes the keys above this one: `next_back` shows the last that is not.
    pub fn seek_back(&mut self, key: &[u8]) {
        let above = self.back.partition_point(|(found, _)| &found[..] > key);
        self.back.drain(..above);
        if !self.back.is_empty() {
            return;
        }
        while self.front.back().is_some_and(|(found, _)| &found[..] > key) {
            self.front.pop_back();
        }
        let is_passed = match &self.high {
            Bound::Unbounded => false,
            Bound::Included(high) | Bound::Excluded(high) => &high[..] <= key,
        };
        if !is_passed {
            self.high = Bound::Included(key.to_vec());
        }
    }

    /// Looks for some keys in the middle, from one end on.
    fn find(&mut self, direction: Direction) -> Result<(), TransactionError> {
        let (range, wanted) = ((self.low.clone(), self.high.clone()), self.wanted);
        let mut scan = self.transaction.scan(&self.tree, range, direction);
        scan.wanted = wanted;
        let (found, bound) = match direction {
            Direction::Up => (&mut self.front, &mut self.low),
            Direction::Down => (&mut self.back, &mut self.high),
        };
        let mut end = Ok(());
        while found.len() < wanted {
            match scan.next_unread() {
                Some(Ok(one)) => found.push_back(one),
                Some(Err(error)) => {
                    end = Err(error);
                    break;
                }
                None => {
                    self.is_through = true;
                    break;
                }
            }
        }
        if let Some((last, _)) = found.back() {
            *bound = Bound::Excluded(last.clone());
        }
        self.wanted = FOUND_AT_ONCE_MAX.min(2 * wanted);
        end
    }

    /// The next key at one end.
    fn show(&mut self, direction: Direction) -> Option<Result<KeyValue, TransactionError>> {
        let is_up = direction == Direction::Up;
        let is_empty = if is_up { self.front.is_empty() } else { self.back.is_empty() };
        if is_empty && !self.is_through {
            let found = self.find(direction);
            let has_some = if is_up { !self.front.is_empty() } else { !self.back.is_empty() };
            if let (Err(error), false) = (found, has_some) {
                self.end(&error);
                return Some(Err(error));
            }
        }
        let (own, other) = match direction {
            Direction::Up => (&mut self.front, &mut self.back),
            Direction::Down => (&mut self.back, &mut self.front),
        };
        let (key, unread) = own.pop_front().or_else(|| other.pop_back())?;
        let value = self.transaction.read(&self.tree, unread);
        Some(value.map(|value| (key, value)).inspect_err(|error| self.end(error)))
    }

    /// After an error other than that somebody else is at it nothing more is shown.
    fn end(&mut self, error: &TransactionError) {
        if !matches!(error, TransactionError::Busy(_)) {
            self.is_through = true;
            self.front.clear();
            self.back.clear();
        }
    }
}

impl Iterator for TwoEnded<'_, '_> {
    type Item = Result<KeyValue, TransactionError>;

    fn next(&mut self) -> Option<Result<KeyValue, TransactionError>> {
        self.show(Direction::Up)
    }
}

impl DoubleEndedIterator for TwoEnded<'_, '_> {
    fn next_back(&mut self) -> Option<Result<KeyValue, TransactionError>> {
        self.show(Direction::Down)
    }
}

//! Keys of a tree in their order, upwards or downwards.
//!
//! Promise: what a scan has shown, and that there was nothing in between, stays so until its
//! transaction ends; no key is missed or met twice, whatever others do meanwhile.
//! Never: keeps a latch from one call to the next.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

use super::Transaction;
use crate::locks::modes::Mode;
use crate::locks::names::Name;
use crate::locks::{Holder, Locks};
use crate::transaction_error::TransactionError;
use crate::tree::{LeafEnd, Seek, Seen};
use crate::trees::named_tree::Tree;

mod two_ended;

pub use two_ended::TwoEnded;

/// Keys that a scan looks for at first. Each time that it goes on it looks for twice as many, so
/// that whoever wants the first one locks few, and whoever wants all visits each leaf about once.
const FOUND_AT_FIRST: usize = 8;
const FOUND_AT_ONCE_MAX: usize = 4096;

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the lowest key to the highest.
    Up,
    /// From the highest key to the lowest.
    Down,
}

/// A key and its value.
pub type KeyValue = (Vec<u8>, Vec<u8>);

/// The keys of a range. Ends with the first error, unless that is [`TransactionError::Busy`].
#[derive(Debug)]
pub struct Scan<'t, 's> {
    transaction: &'t mut Transaction<'s>,
    tree: Tree,
    range: Range,
    direction: Direction,
    /// Where it goes on; none if it is through.
    next: Option<Place>,
    /// What it needs to go on there.
    lacks: Option<(Vec<u8>, Mode)>,
    /// What was found and not shown: keys, and what their leaf says of their values.
    found: VecDeque<KeyValue>,
    /// How many it looks for next.
    wanted: usize,
    /// Whether values are left out.
    is_of_keys: bool,
    /// Whether the transaction may have keys that no page has.
    has_private: bool,
    /// What was shown last, or is deleted; kept only where that is so.
    passed: Option<Vec<u8>>,
}

/// Keys from `low` on, and below `end`.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) low: Vec<u8>,
    pub(crate) end: Option<Vec<u8>>,
}

/// A [`Seek`] that has its key.
#[derive(Debug)]
pub(crate) enum Place {
    At(Vec<u8>),
    Below(Vec<u8>),
    End,
}

/// What is known of the value of a key that was found.
#[derive(Debug)]
enum Unread {
    /// What its leaf says of it.
    Stored(Vec<u8>),
    /// It is this.
    Value(Vec<u8>),
}

/// What came of a visit of a leaf.
enum Visited {
    /// The scan goes on here.
    Next(Place),
    /// It is through.
    Through,
    /// It lacks this lock.
    Lacks(Vec<u8>, Mode),
}

impl<'s> Transaction<'s> {
    /// The keys of a range, with their values, in order. What a scan has read of the tree is locked
    /// as far as it has got.
    pub fn scan<'t, K: AsRef<[u8]>>(
        &'t mut self,
        tree: &Tree,
        range: impl RangeBounds<K>,
        direction: Direction,
    ) -> Scan<'t, 's> {
        let range = Range::of(&range);
        let next = range.begin(direction);
        let has_private = self.private.is_some() && !range.is_empty();
        Scan {
            transaction: self,
            tree: *tree,
            range,
            direction,
            next,
            lacks: None,
            found: VecDeque::new(),
            wanted: FOUND_AT_FIRST,
            is_of_keys: false,
            has_private,
            passed: None,
        }
    }
}

impl Transaction<'_> {
    /// The value of a key that was found, which is locked.
    fn read(&self, tree: &Tree, unread: Unread) -> Result<Vec<u8>, TransactionError> {
        match unread {
            Unread::Stored(stored) => self.value_of(tree, stored),
            Unread::Value(value) => Ok(value),
        }
    }

    /// Deletes every key of a range, and returns how many there were. Until the transaction ends
    /// nobody else puts one there.
    ///
    /// # Errors
    /// See [`TransactionError`]; keys may be deleted then, so roll back, to a savepoint maybe.
    /// [`TransactionError::TooLarge`] is told to a redo-only transaction alone, where the keys have
    /// more bytes than it may keep: delete a part of the range in each of several, or all of it in
    /// a transaction of the other kind.
    pub fn delete_range<K: AsRef<[u8]>>(
        &mut self,
        tree: &Tree,
        range: impl RangeBounds<K>,
    ) -> Result<u64, TransactionError> {
        let (mut count, mut low) = (0, range.start_bound().map(|key| key.as_ref().to_vec()));
        let end = range.end_bound().map(|key| key.as_ref().to_vec());
        loop {
            let mut scan = self.scan(tree, (low, end.clone()), Direction::Up);
            scan.is_of_keys = true;
            let keys = scan.take(FOUND_AT_ONCE_MAX).map(|found| Ok(found?.0));
            let keys = keys.collect::<Result<Vec<_>, TransactionError>>()?;
            for key in &keys {
                count += u64::from(self.delete(tree, key)?);
            }
            let Some(last) = keys.into_iter().next_back() else { return Ok(count) };
            low = Bound::Excluded(last);
        }
    }
}

impl<'s> Transaction<'s> {
    /// The keys that begin with these bytes, with their values, in order. As
    /// [`Transaction::scan`].
    pub fn scan_prefix<'t>(
        &'t mut self,
        tree: &Tree,
        prefix: &[u8],
        direction: Direction,
    ) -> Scan<'t, 's> {
        let end = end_of_prefix(prefix);
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.scan::<&[u8]>(tree, (Bound::Included(prefix), end), direction)
    }
}

impl Iterator for Scan<'_, '_> {
    type Item = Result<KeyValue, TransactionError>;

    fn next(&mut self) -> Option<Result<KeyValue, TransactionError>> {
        let found = self.next_unread()?;
        Some(found.and_then(|(key, unread)| Ok((key, self.read(unread)?))))
    }
}

impl Scan<'_, '_> {
    /// The next key.
    fn next_unread(&mut self) -> Option<Result<(Vec<u8>, Unread), TransactionError>> {
        loop {
            if let Err(error) = self.find() {
                return Some(Err(error));
            }
            let Some((key, kept)) = self.take_private() else { return self.show().map(Ok) };
            self.passed = Some(key.clone());
            if let Some(value) = kept {
                return Some(Ok((key, Unread::Value(value))));
            }
        }
    }

    /// Visits leaves until something is found, or there are no more.
    fn find(&mut self) -> Result<(), TransactionError> {
        while self.found.is_empty() && self.next.is_some() {
            let went = self.go_on();
            if went.as_ref().is_err_and(|error| !matches!(error, TransactionError::Busy(_))) {
                (self.next, self.has_private) = (None, false);
            }
            went?;
        }
        Ok(())
    }

    /// Shows the first of what was found.
    fn show(&mut self) -> Option<(Vec<u8>, Unread)> {
        let (key, stored) = self.found.pop_front()?;
        if self.has_private {
            self.passed = Some(key.clone());
        }
        Some((key, Unread::Stored(stored)))
    }

    fn read(&self, unread: Unread) -> Result<Vec<u8>, TransactionError> {
        if self.is_of_keys { Ok(Vec::new()) } else { self.transaction.read(&self.tree, unread) }
    }

    /// What the transaction alone has of the next key, if that comes before what was found in
    /// pages, or instead of it.
    fn take_private(&mut self) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let (key, kept) = self.next_private()?;
        let order = self.found.front().map(|(found, _)| key.cmp(found));
        let order =
            if self.direction == Direction::Up { order } else { order.map(Ordering::reverse) };
        match order {
            Some(Ordering::Greater) => return None,
            Some(Ordering::Equal) => drop(self.found.pop_front()),
            Some(Ordering::Less) | None => {}
        }
        Some((key, kept))
    }

    fn next_private(&self) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let private = self.transaction.private.as_ref().filter(|_| self.has_private)?;
        let (low, end) = (Bound::Included(&self.range.low[..]), self.range.end.as_deref());
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        let passed = self.passed.as_deref().map(Bound::Excluded);
        let next = match self.direction {
            Direction::Up => private.between(&self.tree, (passed.unwrap_or(low), end)).next(),
            Direction::Down => {
                private.between(&self.tree, (low, passed.unwrap_or(end))).next_back()
            }
        };
        next.map(|(key, kept)| (key.clone(), kept.clone()))
    }

    /// Visits one leaf.
    fn go_on(&mut self) -> Result<(), TransactionError> {
        self.transaction.check_tree(&self.tree)?;
        if let Some((key, mode)) = &self.lacks {
            self.transaction.lock(self.tree.root, key, *mode)?;
            self.lacks = None;
        }
        let Some(place) = self.next.take() else { return Ok(()) };
        match self.visit(&place)? {
            Visited::Through => {}
            Visited::Next(next) => self.next = Some(next),
            Visited::Lacks(key, mode) => {
                self.next = Some(self.place_behind_found().unwrap_or(place));
                self.lacks = Some((key, mode));
            }
        }
        Ok(())
    }

    /// Where the scan goes on behind what it has found in this leaf.
    fn place_behind_found(&self) -> Option<Place> {
        let (last, _) = self.found.back()?;
        Some(match self.direction {
            Direction::Up => Place::At(successor(last)),
            Direction::Down => Place::Below(last.clone()),
        })
    }

    fn visit(&mut self, place: &Place) -> Result<Visited, TransactionError> {
        let Transaction { engine, holder, .. } = &mut *self.transaction;
        let mut visit = Visit {
            locks: &engine.locks,
            holder,
            tree: self.tree,
            range: &self.range,
            found: &mut self.found,
            wanted: self.wanted,
            is_full: false,
            lacks: None,
        };
        let tree = engine.trees().tree(self.tree.root);
        let end = tree.leaf(place.seek(), |seen| visit.see(seen))?;
        if let Some((key, mode)) = visit.lacks {
            return Ok(Visited::Lacks(key, mode));
        }
        if visit.is_full {
            self.wanted = FOUND_AT_ONCE_MAX.min(2 * self.wanted);
            return Ok(self.place_behind_found().map_or(Visited::Through, Visited::Next));
        }
        let next = self.range.behind(end, self.direction);
        Ok(next.map_or(Visited::Through, Visited::Next))
    }
}

/// A visit of a leaf, while that is latched.
struct Visit<'v> {
    locks: &'v Locks,
    holder: &'v mut Holder,
    tree: Tree,
    range: &'v Range,
    found: &'v mut VecDeque<KeyValue>,
    wanted: usize,
    /// Whether so many are found, and there is another one.
    is_full: bool,
    lacks: Option<(Vec<u8>, Mode)>,
}

impl Visit<'_> {
    /// Takes what the scan has come to. False if it does not go on here.
    fn see(&mut self, seen: Seen<'_>) -> bool {
        match seen {
            Seen::Gap(key) => self.lock(key, Mode::READ_GAP),
            // Upwards the scan is through. What is read is that nothing is before this key.
            Seen::Key { key, .. } if self.range.ends_before(key) => false,
            // Downwards it is. What is read is that nothing is behind this key.
            Seen::Key { key, .. } if key < &self.range.low[..] => {
                self.lock(key, Mode::READ_GAP);
                false
            }
            Seen::Key { .. } if self.found.len() >= self.wanted => {
                self.is_full = true;
                false
            }
            Seen::Key { key, value, ghost } => {
                let locked = self.lock(key, Mode::SCAN);
                if locked && !ghost {
                    self.found.push_back((key.to_vec(), value.to_vec()));
                }
                locked
            }
        }
    }

    fn lock(&mut self, key: &[u8], mode: Mode) -> bool {
        let name = Name::of(self.tree.root, key);
        let locked = self.locks.try_lock(self.holder, name, mode);
        if !locked {
            self.lacks = Some((key.to_vec(), mode));
        }
        locked
    }
}

impl Range {
    pub(crate) fn of<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> Range {
        let low = match range.start_bound() {
            Bound::Included(key) => key.as_ref().to_vec(),
            Bound::Excluded(key) => successor(key.as_ref()),
            Bound::Unbounded => Vec::new(),
        };
        let end = match range.end_bound() {
            Bound::Included(key) => Some(successor(key.as_ref())),
            Bound::Excluded(key) => Some(key.as_ref().to_vec()),
            Bound::Unbounded => None,
        };
        Range { low, end }
    }

    /// The keys that begin so.
    pub(crate) fn of_prefix(prefix: &[u8]) -> Range {
        Range { low: prefix.to_vec(), end: end_of_prefix(prefix) }
    }

    /// Where a scan of it begins, unless it is empty.
    pub(crate) fn begin(&self, direction: Direction) -> Option<Place> {
        match (direction, &self.end) {
            _ if self.is_empty() => None,
            (Direction::Up, _) => Some(Place::At(self.low.clone())),
            (Direction::Down, None) => Some(Place::End),
            (Direction::Down, Some(end)) => Some(Place::Below(end.clone())),
        }
    }

    /// Where a scan of it goes on that has come to the end of a leaf, unless it is through.
    pub(crate) fn behind(&self, end: LeafEnd, direction: Direction) -> Option<Place> {
        match (end, direction) {
            (LeafEnd::Next(key), Direction::Up) if !self.ends_before(&key) => Some(Place::At(key)),
            (LeafEnd::Next(key), Direction::Down) if key > self.low => Some(Place::Below(key)),
            _ => None,
        }
    }

    fn is_empty(&self) -> bool {
        self.ends_before(&self.low)
    }

    /// Whether the key is behind all of it.
    pub(crate) fn ends_before(&self, key: &[u8]) -> bool {
        self.end.as_ref().is_some_and(|end| key >= &end[..])
    }
}

impl Place {
    pub(crate) fn seek(&self) -> Seek<'_> {
        match self {
            Place::At(key) => Seek::At(key),
            Place::Below(key) => Seek::Below(key),
            Place::End => Seek::End,
        }
    }
}

/// The first key behind this one.
fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// The first key behind all that begin so; none if there is no such key.
fn end_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

//! Keys come, change and go, and each of that is undone.
//!
//! Promise: a call makes one record about one leaf, or none; splits on the way change no key. What
//! undoes a change makes one record, too, wherever the key is by then.
//! Never: waits for a lock: the caller says under the latch whether he has it.

use holdfast_pages::{Slot, Unfit};

use super::merge::is_thinner;
use super::put::{By, Change, Said, put_keys};
use super::seek::before;
use super::stop::{Stop, TreeError, corrupt};
use super::{Seek, Tree};
use crate::node::body::{Body, Spot};
use crate::node::large::Stored;
use crate::node::{KEY_BYTES_MAX, Node, VALUE_BYTES_MAX};
use crate::pool::Below;

/// Bytes that are compared at once.
const WORD_BYTES: usize = 16;
/// Most bodies are shorter.
const BODY_BYTES_USUAL: usize = 128;

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// It is made, by a record with this body.
    Done(Vec<u8>),
    /// There is no such key; the one before it, or the low fence of the leaf, is this.
    Absent(Vec<u8>),
    /// The key is there, and has a value.
    Exists,
    /// The caller has not got the lock on the gap behind this key. Nothing happened.
    Wait(Vec<u8>),
}

/// What an operation wants of a leaf.
enum Wish {
    /// That the body be put.
    Put,
    /// More room.
    Room,
    /// Nothing.
    Stop(Changed),
}

/// What came of a visit of a leaf.
struct Visit {
    /// None if it made room alone.
    changed: Option<Changed>,
    /// The level of a foster child that was passed on the way.
    passed: Option<u8>,
}

impl<B: Below> Tree<'_, B> {
    /// Adds a key. `has_gap` is asked under the latch whether the caller has the lock on the gap
    /// behind the key it is told.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn insert(
        &self,
        key: &[u8],
        value: &[u8],
        by: By,
        mut has_gap: impl FnMut(&[u8]) -> bool,
    ) -> Result<Changed, TreeError<B::Error>> {
        check_lengths(key, value.len())?;
        self.change(key, by, |node, found, body| {
            let place = match found {
                Ok(place) => place,
                Err(place) => {
                    let gap = before(node, place);
                    if !has_gap(&gap) {
                        return Ok(Wish::Stop(Changed::Wait(gap)));
                    }
                    if !node.fits(key, value.len()) {
                        return Ok(Wish::Room);
                    }
                    Body::Insert { spot: self.spot(place, key), value }.put(body);
                    return Ok(Wish::Put);
                }
            };
            let old = node.entry(place);
            if !old.ghost {
                return Ok(Wish::Stop(Changed::Exists));
            }
            let spot = self.spot(place, key);
            Ok(instead(
                node,
                place,
                value.len(),
                &Body::Revive { spot, old: old.value, new: value },
                body,
            ))
        })
    }

    /// Gives a key another value, which `new` makes of the one it has; [`Changed::Exists`] if it
    /// makes none.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn replace(
        &self,
        key: &[u8],
        by: By,
        mut new: impl FnMut(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<Changed, TreeError<B::Error>> {
        let mut too_large = false;
        let changed = self.change(key, by, |node, found, body| {
            let Some((place, old)) = live(node, found) else { return Ok(absent(node, found)) };
            let Some(new) = new(old) else { return Ok(Wish::Stop(Changed::Exists)) };
            too_large = new.len() > VALUE_BYTES_MAX;
            if too_large {
                return Ok(Wish::Stop(Changed::Exists));
            }
            let (at, gone, come) = told(old, &new);
            let spot = self.spot(place, key);
            Ok(instead(
                node,
                place,
                new.len(),
                &Body::Replace { spot, at, old: gone, new: come },
                body,
            ))
        })?;
        if too_large { Err(TreeError::ValueTooLarge) } else { Ok(changed) }
    }

    /// Deletes a key; its entry stays as a ghost.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn ghost(&self, key: &[u8], by: By) -> Result<Changed, TreeError<B::Error>> {
        self.change(key, by, |node, found, body| {
            let Some((place, _)) = live(node, found) else { return Ok(absent(node, found)) };
            Body::Ghost(self.spot(place, key)).put(body);
            Ok(Wish::Put)
        })
    }

    /// Undoes what this body did, on behalf of the transaction that did it and has held its lock
    /// since.
    ///
    /// # Errors
    /// See [`TreeError`]; [`TreeError::Corrupt`] too if what was done is not there.
    pub(crate) fn undo(&self, body: &[u8], slot: Slot) -> Result<(), TreeError<B::Error>> {
        let lost = |why| TreeError::Corrupt { page: self.root, why };
        let done = Body::parse(body).map_err(lost)?;
        let key = done.spot().ok_or(lost(Unfit("nobody undoes that")))?.key;
        self.change(key, By::Compensate(slot), |node, found, body| {
            let place = found.map_err(|_| Unfit("the key that is to be undone is gone"))?;
            let (spot, entry) = (self.spot(place, key), node.entry(place));
            let (undo, bytes) = match done {
                Body::Insert { .. } => (Body::Ghost(spot), entry.value.len()),
                Body::Ghost(_) => (Body::Unghost(spot), entry.value.len()),
                Body::Revive { old, .. } => (Body::Unrevive { spot, old }, old.len()),
                Body::Replace { at, old, new, .. } => {
                    let bytes = (entry.value.len() + old.len()).checked_sub(new.len());
                    let bytes = bytes.ok_or(Unfit("the value that is to be undone is another"))?;
                    (Body::Replace { spot, at, old: new, new: old }, bytes)
                }
                _ => return Err(Unfit("nobody undoes that")),
            };
            Ok(instead(node, place, bytes, &undo, body))
        })?;
        if matches!(done, Body::Insert { .. } | Body::Revive { .. }) {
            self.numbers.note_untidy(self.root, key);
        }
        if let Some(large) = done.comes().and_then(Stored::large_of) {
            // It is undone, whether its pages can be freed now or not.
            let _ = self.free(large);
        }
        Ok(())
    }

    /// Finds the leaf of a key and does with it what `wish` wants, after it got its room.
    fn change(
        &self,
        key: &[u8],
        by: By,
        mut wish: impl FnMut(Node<'_>, Result<usize, usize>, &mut Vec<u8>) -> Result<Wish, Unfit>,
    ) -> Result<Changed, TreeError<B::Error>> {
        loop {
            let visit = self.again(|| self.visit(key, by, &mut wish))?;
            self.formers.bound();
            if let Some(level) = visit.passed {
                self.again(|| self.adopt(key, level))?;
            }
            if let Some(changed) = visit.changed {
                return Ok(changed);
            }
        }
    }

    /// Does with the leaf of a key what `wish` wants, or makes room for that.
    fn visit(
        &self,
        key: &[u8],
        by: By,
        wish: &mut impl FnMut(Node<'_>, Result<usize, usize>, &mut Vec<u8>) -> Result<Wish, Unfit>,
    ) -> Result<Visit, Stop<B::Error>> {
        let (latch, passed) = self.descend(Seek::At(key), 0, true)?;
        let (mut leaf, mut body) = (latch.exclusive(), Vec::with_capacity(BODY_BYTES_USUAL));
        let node = self.node(&leaf)?;
        let wish = wish(node, node.find(key), &mut body).map_err(|why| corrupt(&leaf, why))?;
        let changed = match wish {
            Wish::Stop(changed) => Some(changed),
            Wish::Room => {
                self.make_room(&mut leaf, key)?;
                None
            }
            Wish::Put => {
                let (number, room) = (leaf.number(), node.room());
                let said = Said::Body(by, &body);
                let changes = &mut [Change { page: &mut leaf, number, said: &[said] }];
                put_keys(self.stream, self.formers, changes)?;
                if number != self.root && is_thinner(room, self.node(&leaf)?) {
                    self.numbers.note_untidy(self.root, key);
                }
                Some(Changed::Done(body))
            }
        };
        Ok(Visit { changed, passed })
    }

    fn spot<'k>(&self, place: usize, key: &'k [u8]) -> Spot<'k> {
        Spot { tree: self.root, place, key }
    }
}

fn check_lengths<E>(key: &[u8], value_bytes: usize) -> Result<(), TreeError<E>> {
    match (key.len() > KEY_BYTES_MAX, value_bytes > VALUE_BYTES_MAX) {
        (true, _) => Err(TreeError::KeyTooLarge),
        (_, true) => Err(TreeError::ValueTooLarge),
        _ => Ok(()),
    }
}

/// The body, if the entry there may have a value of so many bytes.
fn instead(
    node: Node<'_>,
    place: usize,
    value_bytes: usize,
    wanted: &Body<'_>,
    body: &mut Vec<u8>,
) -> Wish {
    if !node.fits_instead(place, value_bytes) {
        return Wish::Room;
    }
    wanted.put(body);
    Wish::Put
}

/// An entry that is no ghost.
fn live(node: Node<'_>, found: Result<usize, usize>) -> Option<(usize, &[u8])> {
    let entry = node.entry(found.ok()?);
    (!entry.ghost).then_some((found.ok()?, entry.value))
}

fn absent(node: Node<'_>, found: Result<usize, usize>) -> Wish {
    // A ghost's key is locked by its own name, and so is the gap before one that is not there.
    let gap = found.map_or_else(|place| before(node, place), |place| node.key(place));
    Wish::Stop(Changed::Absent(gap))
}

/// What a record tells of a value that becomes another: where they differ. Where a large value is
/// it tells whole, so that whoever undoes or commits that finds it.
pub(super) fn told<'v>(old: &'v [u8], new: &'v [u8]) -> (usize, &'v [u8], &'v [u8]) {
    let is_large = |value| Stored::large_of(value).is_some();
    if is_large(old) || is_large(new) { (0, old, new) } else { difference(old, new) }
}

/// Where two values differ: from which byte on, what goes there and what comes.
pub(super) fn difference<'v>(old: &'v [u8], new: &'v [u8]) -> (usize, &'v [u8], &'v [u8]) {
    let front = same(old.chunks(WORD_BYTES).zip(new.chunks(WORD_BYTES)), |word| word.iter());
    let (old, new) = (&old[front..], &new[front..]);
    let words = old.rchunks(WORD_BYTES).zip(new.rchunks(WORD_BYTES));
    let back = same(words, |word| word.iter().rev());
    (front, &old[..old.len() - back], &new[..new.len() - back])
}

/// How many bytes are the same, of pairs of words, the bytes of which come in this order.
fn same<'v, Bytes: Iterator<Item = &'v u8>>(
    mut words: impl Iterator<Item = (&'v [u8], &'v [u8])>,
    bytes: impl Fn(&'v [u8]) -> Bytes,
) -> usize {
    let mut count = 0;
    let differ = words.find(|(one, other)| {
        let same = one == other;
        count += if same { one.len() } else { 0 };
        !same
    });
    let pairs = differ.into_iter().flat_map(|(one, other)| bytes(one).zip(bytes(other)));
    count + pairs.take_while(|(one, other)| one == other).count()
}

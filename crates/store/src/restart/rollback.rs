//! What a transaction has changed, so that it can be undone.
//!
//! Promise: changes are undone newest first and each once; a savepoint means the same changes for
//! ever, or is told to be gone. However many there are, the oldest can be put aside, and then only
//! those behind them are in memory.
//! Never: reads the log, or knows what a change is.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_pages::{Slot, Unfit};

use crate::node::aside::{Aside, Opened, put_parts};

/// Most bytes that the keys and values may have that a redo-only transaction changes: it keeps them
/// in memory until it is committed.
pub const KEPT_BYTES_MAX: usize = 4 << 20;

/// Undoes changes.
pub(crate) trait Undoer {
    /// Why it could not.
    type Error;

    /// Undoes what `body` did, and says so in exactly one record of this transaction, which is how
    /// a restart knows. On an error nothing was undone or said.
    ///
    /// # Errors
    /// Whatever kept it from that.
    fn undo(&self, slot: Slot, body: &[u8]) -> Result<(), Self::Error>;

    /// Has these changes lie elsewhere, which the newest `count` bodies of the transaction tell,
    /// and says so in one record.
    ///
    /// # Errors
    /// Whatever kept it from that; nothing was said.
    fn put_aside(&self, slot: Slot, count: u64, told: &[u8]) -> Result<Aside, Self::Error>;

    /// Brings the newest changes back that lie elsewhere, and says in one record that these are the
    /// bodies which tell them.
    ///
    /// # Errors
    /// Whatever kept it from that; nothing was said.
    fn bring_back(&self, slot: Slot, aside: Aside) -> Result<Vec<u8>, Self::Error>;

    /// What somebody is told whose changes are none.
    fn unfit(why: Unfit) -> Self::Error;

    /// Says that the transaction has undone everything.
    ///
    /// # Errors
    /// Whatever kept it from that.
    fn aborted(&self, slot: Slot) -> Result<(), Self::Error>;
}

/// How many transactions were begun, in all stores of this process.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// The changes of a transaction that are not undone.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Whose they are, for savepoints; 0 if it has none.
    owner: u64,
    /// The oldest, if they do not lie here.
    aside: Option<Aside>,
    /// The bodies of those behind them, one behind the other.
    bytes: Vec<u8>,
    /// Where each body ends.
    ends: Vec<usize>,
    /// How many there ever were.
    made: u64,
    /// From which on more were made than there are before them.
    skips: Vec<Skip>,
}

/// A place among the changes where some were undone.
#[derive(Clone, Copy, Debug)]
struct Skip {
    /// So many are before it.
    from: u64,
    /// So many were undone there or before it.
    undone: u64,
}

/// A place among the changes of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    /// Whose it is.
    owner: u64,
    /// Changes before it.
    count: u64,
    /// Which of all that there ever were the last of them is, from 1; 0 if there is none.
    number: u64,
}

/// The changes would have more than [`KEPT_BYTES_MAX`] bytes. Commit what there is, or roll back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// The transaction was rolled back to a savepoint before this one, or it is another one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl Changes {
    /// None, of a transaction that begins.
    #[must_use]
    pub(crate) fn new() -> Changes {
        Changes { owner: 1 + BEGUN.fetch_add(1, Ordering::Relaxed), ..Changes::default() }
    }

    /// Whether there is nothing to undo.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// How many there are to undo.
    fn count(&self) -> u64 {
        self.aside.map_or(0, |aside| aside.changes) + self.ends.len() as u64
    }

    /// The changes that lie elsewhere, which are the oldest.
    pub(crate) fn aside(&self) -> Option<Aside> {
        self.aside
    }

    /// Bytes of those that lie here.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether a change whose body has so many bytes may be made.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub(crate) fn check_room(&self, body_bytes: usize) -> Result<(), TooLarge> {
        if self.bytes.len() + body_bytes <= KEPT_BYTES_MAX { Ok(()) } else { Err(TooLarge) }
    }

    /// Remembers a change that was made, room or not.
    #[inline]
    pub(crate) fn push(&mut self, body: &[u8]) {
        let from = self.count();
        let undone = self.made - from;
        if self.undone_before(from) != undone {
            self.skips.push(Skip { from, undone });
        }
        self.made += 1;
        self.hold(body);
    }

    /// Takes over a body of a transaction that nobody runs any more; those come oldest first.
    ///
    /// # Errors
    /// It stands for others that lie elsewhere, and is not the first, or stands for none.
    pub(crate) fn adopt(&mut self, body: &[u8]) -> Result<(), Unfit> {
        let Some(aside) = Aside::parse(body)? else {
            self.push(body);
            return Ok(());
        };
        if !self.is_empty() {
            return Err(Unfit("changes that lie elsewhere are not the oldest"));
        }
        (self.aside, self.made) = (Some(aside), aside.changes);
        Ok(())
    }

    /// Has all of them lie elsewhere, if there are some. After an error they lie where they did.
    ///
    /// # Errors
    /// The undoer's.
    pub(crate) fn put_aside<U: Undoer + ?Sized>(
        &mut self,
        slot: Slot,
        undoer: &U,
    ) -> Result<(), U::Error> {
        if self.ends.is_empty() {
            return Ok(());
        }
        let mut told = Vec::with_capacity(self.bytes.len() + 2 * self.ends.len());
        put_parts(self.aside, self.iter(), &mut told);
        let count = u64::from(self.aside.is_some()) + self.ends.len() as u64;
        let aside = undoer.put_aside(slot, count, &told)?;
        assert!(aside.changes == self.count(), "what is put aside is all that there is");
        self.aside = Some(aside);
        self.bytes.clear();
        self.ends.clear();
        Ok(())
    }

    /// The newest change, if it lies here.
    #[must_use]
    pub(crate) fn newest(&self) -> Option<&[u8]> {
        let before = self.ends.len().checked_sub(1)?;
        Some(&self.bytes[self.begin_of(before)..])
    }

    /// Every change that lies here, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.ends.iter().enumerate();
        ends.map(|(at, end)| &self.bytes[self.begin_of(at)..*end])
    }

    /// Where the transaction stands.
    #[must_use]
    pub(crate) fn savepoint(&self) -> Savepoint {
        let count = self.count();
        Savepoint { owner: self.owner, count, number: self.number_of(count) }
    }

    /// Whether the transaction can still go back there.
    ///
    /// # Errors
    /// [`Gone`].
    pub(crate) fn check(&self, savepoint: Savepoint) -> Result<(), Gone> {
        let Savepoint { owner, count, number } = savepoint;
        let is_there = count <= self.count() && self.number_of(count) == number;
        if owner == self.owner && is_there { Ok(()) } else { Err(Gone) }
    }

    /// Forgets what came after `savepoint`, which nobody has to undo.
    ///
    /// # Panics
    /// If the savepoint is gone.
    pub(crate) fn forget_behind(&mut self, savepoint: Savepoint) {
        assert!(self.check(savepoint).is_ok(), "the savepoint was looked at before");
        while self.count() > savepoint.count {
            self.pop();
        }
    }

    /// Undoes what came after `savepoint`. After an error it can go on where it stopped.
    ///
    /// # Errors
    /// The undoer's.
    ///
    /// # Panics
    /// If the savepoint is gone.
    pub(crate) fn roll_back_to<U: Undoer + ?Sized>(
        &mut self,
        savepoint: Savepoint,
        slot: Slot,
        undoer: &U,
    ) -> Result<(), U::Error> {
        assert!(self.check(savepoint).is_ok(), "the savepoint was looked at before");
        while self.count() > savepoint.count {
            self.undo_newest(slot, undoer)?;
        }
        Ok(())
    }

    /// Undoes everything, and says so.
    ///
    /// # Errors
    /// The undoer's.
    pub(crate) fn abort<U: Undoer + ?Sized>(
        &mut self,
        slot: Slot,
        undoer: &U,
    ) -> Result<(), U::Error> {
        self.roll_back_to(Savepoint { owner: self.owner, count: 0, number: 0 }, slot, undoer)?;
        undoer.aborted(slot)
    }

    fn undo_newest<U: Undoer + ?Sized>(&mut self, slot: Slot, undoer: &U) -> Result<(), U::Error> {
        if let (Some(aside), None) = (self.aside, self.newest()) {
            self.take_back(&undoer.bring_back(slot, aside)?).map_err(U::unfit)?;
        }
        undoer.undo(slot, self.newest().expect("there is a change"))?;
        self.pop();
        Ok(())
    }

    /// Holds again what lay elsewhere.
    fn take_back(&mut self, told: &[u8]) -> Result<(), Unfit> {
        let opened = Opened::of(told)?;
        assert!(opened.changes() == self.count(), "what comes back is what was put aside");
        self.aside = opened.older;
        opened.bodies.iter().for_each(|body| self.hold(body));
        Ok(())
    }

    fn hold(&mut self, body: &[u8]) {
        self.bytes.extend_from_slice(body);
        self.ends.push(self.bytes.len());
    }

    fn pop(&mut self) {
        self.ends.pop();
        self.bytes.truncate(self.begin_of(self.ends.len()));
        let count = self.count();
        self.skips.truncate(self.skips.partition_point(|skip| skip.from < count));
    }

    /// Which of all that there ever were the last of the first `count` is, from 1; 0 if there is
    /// none.
    fn number_of(&self, count: u64) -> u64 {
        count.checked_sub(1).map_or(0, |last| count + self.undone_before(last))
    }

    /// How many were undone before the change that so many are before.
    fn undone_before(&self, count: u64) -> u64 {
        let skips = self.skips.partition_point(|skip| skip.from <= count);
        skips.checked_sub(1).map_or(0, |last| self.skips[last].undone)
    }

    fn begin_of(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

#[cfg(test)]
pub(crate) mod tests;

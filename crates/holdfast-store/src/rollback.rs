//! What a transaction has changed, in memory, so that it can be undone.
//!
//! Promise: changes are undone newest first and each once; a savepoint means the same changes for
//! ever, or is told to be gone.
//! Never: reads the log, or knows what a change is.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_pages::Slot;

/// Most bytes that the changes of one transaction may have. Every checkpoint holds those of all
/// transactions that are running. Of a value in pages of its own they have the place alone: those
/// pages are limited by the disk.
pub const UNDO_BYTES_MAX: usize = 4 << 20;

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
    /// Their bodies, one behind the other.
    bytes: Vec<u8>,
    ends: Vec<End>,
    /// How many there ever were.
    made: u64,
}

/// Where a change ends.
#[derive(Clone, Copy, Debug)]
struct End {
    bytes: usize,
    /// Which of all that there ever were it is, from 1.
    number: u64,
}

/// A place among the changes of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    /// Whose it is.
    owner: u64,
    /// Changes before it.
    count: usize,
    /// Which one the last of them is; 0 if there is none.
    number: u64,
}

/// The changes would have more than [`UNDO_BYTES_MAX`] bytes. Commit what there is, or roll back.
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
        self.ends.is_empty()
    }

    /// Whether a change whose body has so many bytes may be made.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub(crate) fn check_room(&self, body_bytes: usize) -> Result<(), TooLarge> {
        if self.bytes.len() + body_bytes <= UNDO_BYTES_MAX { Ok(()) } else { Err(TooLarge) }
    }

    /// Remembers a change that was made, room or not.
    #[inline]
    pub(crate) fn push(&mut self, body: &[u8]) {
        self.bytes.extend_from_slice(body);
        self.made += 1;
        self.ends.push(End { bytes: self.bytes.len(), number: self.made });
    }

    /// The newest change.
    #[must_use]
    pub(crate) fn newest(&self) -> Option<&[u8]> {
        let before = self.ends.len().checked_sub(1)?;
        Some(&self.bytes[self.begin_of(before)..])
    }

    /// Every change, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.ends.iter().enumerate();
        ends.map(|(at, end)| &self.bytes[self.begin_of(at)..end.bytes])
    }

    /// Where the transaction stands.
    #[must_use]
    pub(crate) fn savepoint(&self) -> Savepoint {
        let number = self.ends.last().map_or(0, |end| end.number);
        Savepoint { owner: self.owner, count: self.ends.len(), number }
    }

    /// Whether the transaction can still go back there.
    ///
    /// # Errors
    /// [`Gone`].
    pub(crate) fn check(&self, savepoint: Savepoint) -> Result<(), Gone> {
        let Savepoint { owner, count, number } = savepoint;
        let last = count.checked_sub(1).map(|last| self.ends.get(last));
        let found = last.map_or(Some(0), |end| end.map(|end| end.number));
        if owner == self.owner && found == Some(number) { Ok(()) } else { Err(Gone) }
    }

    /// Forgets what came after `savepoint`, which nobody has to undo.
    ///
    /// # Panics
    /// If the savepoint is gone.
    pub(crate) fn forget_behind(&mut self, savepoint: Savepoint) {
        assert!(self.check(savepoint).is_ok(), "the savepoint was looked at before");
        self.ends.truncate(savepoint.count);
        self.bytes.truncate(self.begin_of(self.ends.len()));
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
        while self.ends.len() > savepoint.count {
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
        undoer.undo(slot, self.newest().expect("there is a change"))?;
        self.ends.pop();
        self.bytes.truncate(self.begin_of(self.ends.len()));
        Ok(())
    }

    fn begin_of(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.ends[before].bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests;

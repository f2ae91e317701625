//! Reading records back, in order.
//!
//! Promise: lazily, one frame in memory at a time; every record up to the end, or up to the first
//! damage, which is then reported with its place and never taken for the end.
//! Never: shows a record that is not durable; keeps anybody from appending.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use holdfast_log::{Cursor, Lsn};

use crate::error::ReplayError;
use crate::format::{Format, ViewFormat};
use crate::payload::take;
use crate::shared::Shared;
use crate::wrapping::Opener;

/// A record that was read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<R> {
    /// Where its set begins.
    pub lsn: Lsn,
    /// Which record of the set it is, from 0.
    pub index: u16,
    /// Where the next set begins: a checkpoint, once the whole set has been applied.
    pub end: Lsn,
    /// The record.
    pub record: R,
}

/// The records of a log from some position to what was durable when reading began. Ends after the
/// first error.
pub struct Replay<R, F> {
    reader: Reader,
    until: Lsn,
    ended: bool,
    types: PhantomData<fn() -> (R, F)>,
}

impl<R, F: Format<R>> Replay<R, F> {
    pub(crate) fn new(shared: &Arc<Shared>, from: Lsn) -> Replay<R, F> {
        let until = shared.log.marks().durable;
        Replay { reader: Reader::new(shared, from), until, ended: false, types: PhantomData }
    }

    /// The next record where it lies in the replay's own memory, unless there are no more. What it
    /// gives can be used until the next call; nothing is allocated for it.
    ///
    /// # Errors
    /// See [`ReplayError`]. After one there are no more.
    #[inline]
    pub fn next_view<'a>(&'a mut self) -> Result<Option<Entry<F::View<'a>>>, ReplayError>
    where
        F: ViewFormat<R>,
    {
        match self.step()? {
            false => Ok(None),
            true => self.reader.with(F::view).map(Some),
        }
    }

    /// Goes on to the next record, if there is one. An error is the last that it returns.
    #[inline]
    fn step(&mut self) -> Result<bool, ReplayError> {
        if self.ended {
            return Ok(false);
        }
        let next = self.reader.next(self.until);
        self.ended = !matches!(next, Ok(true));
        next
    }
}

impl<R, F: Format<R>> Iterator for Replay<R, F> {
    type Item = Result<Entry<R>, ReplayError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = match self.step() {
            Ok(false) => return None,
            Ok(true) => self.reader.with(F::decode),
            Err(error) => Err(error),
        };
        self.ended |= entry.is_err();
        Some(entry)
    }
}

/// The set that was read last, and how far its records have been taken.
struct Set {
    lsn: Lsn,
    end: Lsn,
    records: u16,
    /// The record that comes next, and where.
    index: u16,
    offset: usize,
    /// Where the one before lies.
    record: Range<usize>,
    state: State,
}

/// Where the records of a set are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// In its frame, as they were appended.
    Plain,
    /// In its frame, to be opened.
    Closed,
    /// In the opener.
    Open,
}

/// The way from record to record, whatever their type.
pub(crate) struct Reader {
    pub(crate) shared: Arc<Shared>,
    pub(crate) cursor: Cursor,
    opener: Opener,
    set: Set,
}

impl Reader {
    pub(crate) fn new(shared: &Arc<Shared>, from: Lsn) -> Reader {
        let cursor = shared.log.cursor(from);
        let opener = Opener::new(&shared.wrapping);
        let state = State::Plain;
        let set =
            Set { lsn: from, end: from, records: 0, index: 0, offset: 0, record: 0..0, state };
        Reader { shared: Arc::clone(shared), cursor, opener, set }
    }

    /// Goes on to the next record, if its set begins below `until`. Where it lies is not handed
    /// over, but stays here: see [`Cursor`].
    #[inline]
    pub(crate) fn next(&mut self, until: Lsn) -> Result<bool, ReplayError> {
        while self.set.index == self.set.records {
            if self.cursor.position() >= until || !self.next_set()? {
                return Ok(false);
            }
        }
        if self.set.state == State::Closed {
            self.open()?;
        }
        let Some((record, next)) = take(self.payload(), self.set.records, self.set.offset) else {
            let Set { lsn, index, .. } = self.set;
            return Err(ReplayError::DamagedRecord { lsn, index });
        };
        (self.set.index, self.set.offset, self.set.record) = (self.set.index + 1, next, record);
        Ok(true)
    }

    /// Goes on to the next set, if there is one.
    #[inline]
    fn next_set(&mut self) -> Result<bool, ReplayError> {
        let Some(frame) = self.cursor.next_frame()? else { return Ok(false) };
        let (lsn, end) = (frame.header.lsn, frame.end());
        let records = self.shared.wrapping.records_of(&frame);
        let state = if self.opener.is_plain(&frame) { State::Plain } else { State::Closed };
        self.set = Set { lsn, end, records, index: 0, offset: 0, record: 0..0, state };
        Ok(true)
    }

    /// Opens the set that was read last. It stays closed if that fails.
    fn open(&mut self) -> Result<(), ReplayError> {
        if let Some(frame) = self.cursor.current() {
            self.opener.open(&self.shared.log, &frame)?;
        }
        self.set.state = State::Open;
        Ok(())
    }

    /// The records of the set that was read last.
    #[inline]
    fn payload(&self) -> &[u8] {
        match self.set.state {
            State::Open => self.opener.set(),
            State::Plain | State::Closed => self.cursor.payload(),
        }
    }

    /// What `read` makes of the record that [`Reader::next`] went on to.
    #[inline]
    pub(crate) fn with<'a, T>(
        &'a self,
        read: impl FnOnce(&'a [u8]) -> Result<T, crate::format::FormatError>,
    ) -> Result<Entry<T>, ReplayError> {
        let read = read(&self.payload()[self.set.record.clone()]);
        let (lsn, index, end) = (self.set.lsn, self.set.index - 1, self.set.end);
        match read {
            Ok(record) => Ok(Entry { lsn, index, end, record }),
            Err(reason) => Err(ReplayError::Undecodable { lsn, index, reason }),
        }
    }
}

impl<R, F> fmt::Debug for Replay<R, F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cursor = &self.reader.cursor;
        out.debug_struct("Replay").field("cursor", cursor).finish_non_exhaustive()
    }
}

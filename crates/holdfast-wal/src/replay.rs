//! Reading records back, in order.
//!
//! Promise: lazily, one frame in memory at a time; every record up to the end, or up to the first
//! damage, which is then reported with its place and never taken for the end.
//! Never: shows a record that is not durable; keeps anybody from appending.

use std::fmt;
use std::marker::PhantomData;
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
    pub fn next_view<'a>(&'a mut self) -> Result<Option<Entry<F::View<'a>>>, ReplayError>
    where
        F: ViewFormat<R>,
    {
        match self.step() {
            None => Ok(None),
            Some(place) => self.reader.with(&place?, F::view).map(Some),
        }
    }

    /// The place of the next record. An error is the last that it returns.
    fn step(&mut self) -> Option<Result<Place, ReplayError>> {
        if self.ended {
            return None;
        }
        let next = self.reader.next(self.until).transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

impl<R, F: Format<R>> Iterator for Replay<R, F> {
    type Item = Result<Entry<R>, ReplayError>;

    fn next(&mut self) -> Option<Self::Item> {
        let place = self.step()?;
        let entry = place.and_then(|place| self.reader.with(&place, F::decode));
        self.ended |= entry.is_err();
        Some(entry)
    }
}

/// Where a record lies in the frame that was read last.
pub(crate) struct Place {
    lsn: Lsn,
    index: u16,
    end: Lsn,
    bytes: std::ops::Range<usize>,
}

/// The way from record to record, whatever their type.
pub(crate) struct Reader {
    pub(crate) shared: Arc<Shared>,
    pub(crate) cursor: Cursor,
    opener: Opener,
    /// The record of the current frame that comes next, and where.
    index: u16,
    offset: usize,
}

impl Reader {
    pub(crate) fn new(shared: &Arc<Shared>, from: Lsn) -> Reader {
        let cursor = shared.log.cursor(from);
        let opener = Opener::new(&shared.wrapping);
        Reader { shared: Arc::clone(shared), cursor, opener, index: 0, offset: 0 }
    }

    /// The place of the next record, if its set begins below `until`.
    pub(crate) fn next(&mut self, until: Lsn) -> Result<Option<Place>, ReplayError> {
        while !self.in_frame() {
            (self.index, self.offset) = (0, 0);
            if self.cursor.position() >= until || self.cursor.next_frame()?.is_none() {
                return Ok(None);
            }
        }
        let frame = self.cursor.current().expect("there is a frame with records left");
        let (lsn, end, index) = (frame.header.lsn, frame.end(), self.index);
        self.opener.open(&self.shared.log, &frame)?;
        let taken = take(self.opener.set(&frame), self.offset);
        let (bytes, next) = taken.ok_or(ReplayError::DamagedRecord { lsn, index })?;
        (self.index, self.offset) = (index + 1, next);
        Ok(Some(Place { lsn, index, end, bytes }))
    }

    /// What `read` makes of the record that lies there.
    pub(crate) fn with<'a, T>(
        &'a self,
        place: &Place,
        read: impl FnOnce(&'a [u8]) -> Result<T, crate::format::FormatError>,
    ) -> Result<Entry<T>, ReplayError> {
        let Place { lsn, index, end, .. } = *place;
        let frame = self.cursor.current().expect("the place is in the current frame");
        let record = read(&self.opener.set(&frame)[place.bytes.clone()]);
        let record = record.map_err(|reason| ReplayError::Undecodable { lsn, index, reason })?;
        Ok(Entry { lsn, index, end, record })
    }

    fn in_frame(&self) -> bool {
        self.cursor.current().is_some_and(|frame| self.index < frame.header.records)
    }
}

impl<R, F> fmt::Debug for Replay<R, F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cursor = &self.reader.cursor;
        out.debug_struct("Replay").field("cursor", cursor).finish_non_exhaustive()
    }
}

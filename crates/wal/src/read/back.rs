//! Reading records back, the newest first.
//!
//! Promise: what [`crate::Replay`] gives, in the opposite order, records of a set included.
//! Never: gives what lies behind damage in its span, because where its sets begin is not known.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use holdfast_log::{BackCursor, Lsn};

use crate::error::ReplayError;
use crate::format::Format;
use crate::payload::take;
use crate::read::replay::Entry;
use crate::shared::Shared;
use crate::wrapping::Opener;

/// The records of a log from what was durable when reading began, or from another position, back to
/// the last checkpoint. Ends after the first error.
pub struct ReplayBack<R, F> {
    cursor: BackCursor,
    shared: Arc<Shared>,
    opener: Opener,
    /// Whether the current set lies in the opener.
    opened: bool,
    lsn: Lsn,
    end: Lsn,
    /// The records of the current set that are still to be given.
    records: Vec<Range<usize>>,
    ended: bool,
    types: PhantomData<fn() -> (R, F)>,
}

impl<R, F: Format<R>> ReplayBack<R, F> {
    pub(crate) fn new(shared: &Arc<Shared>, from: Lsn) -> ReplayBack<R, F> {
        ReplayBack {
            cursor: shared.log.back_cursor(from),
            shared: Arc::clone(shared),
            opener: Opener::new(&shared.wrapping),
            opened: false,
            lsn: from,
            end: from,
            records: Vec::new(),
            ended: false,
            types: PhantomData,
        }
    }

    fn step(&mut self) -> Result<Option<Entry<R>>, ReplayError> {
        while self.records.is_empty() {
            if !self.previous_set()? {
                return Ok(None);
            }
        }
        let (lsn, end, index) = (self.lsn, self.end, self.records.len() as u16 - 1);
        let bytes = self.records.pop().expect("there are records left");
        let set = if self.opened { self.opener.set() } else { self.cursor.payload() };
        let record = F::decode(&set[bytes]);
        let record = record.map_err(|reason| ReplayError::Undecodable { lsn, index, reason })?;
        Ok(Some(Entry { lsn, index, end, record }))
    }

    /// Goes on to the set before, if there is one, and finds its records.
    fn previous_set(&mut self) -> Result<bool, ReplayError> {
        let Some(frame) = self.cursor.next_frame()? else { return Ok(false) };
        (self.lsn, self.end) = (frame.header.lsn, frame.end());
        self.opened = !self.opener.is_plain(&frame);
        if self.opened {
            self.opener.open(&self.shared.log, &frame)?;
        }
        let set = if self.opened { self.opener.set() } else { frame.payload };
        let mut offset = 0;
        let records = self.shared.wrapping.records_of(&frame);
        for index in 0..records {
            let taken = take(set, records, offset);
            let lsn = self.lsn;
            let (bytes, next) = taken.ok_or(ReplayError::DamagedRecord { lsn, index })?;
            self.records.push(bytes);
            offset = next;
        }
        Ok(true)
    }
}

impl<R, F: Format<R>> Iterator for ReplayBack<R, F> {
    type Item = Result<Entry<R>, ReplayError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.step().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

impl<R, F> fmt::Debug for ReplayBack<R, F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ReplayBack").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

//! Fills a ring with the frames that an open meets in the segments.
//!
//! Reading is most of the time that an open takes, so a frame that a scan has just looked at goes
//! into the ring at once, and is not read again.
//!
//! Promise: [`Refill::has`] only what lies in the ring without a gap.
//! Never: says that the ring is the log.

use holdfast_core::Lsn;
use holdfast_memory::{Guard, Region};

use crate::config::Retention;
use crate::error::OpenError;
use crate::read::spans::SpanReader;

/// A ring that is being filled. Nobody else reads it or writes to it.
pub(crate) struct Refill<'a> {
    guard: Guard<'a>,
    /// What is in the ring, if frames are put there as they are met.
    filled: Option<(Lsn, Lsn)>,
    /// Whether no frame has been left out.
    takes: bool,
}

impl<'a> Refill<'a> {
    /// With nothing in it. Only a log that stays in its ring takes frames as they are met; the ring
    /// of another needs none but the last ones.
    pub(crate) fn new(region: &'a Region, retention: Retention) -> Refill<'a> {
        let takes = retention == Retention::InRing;
        Refill { guard: region.lock(), filled: None, takes }
    }

    /// Takes the frame at `at`, if it goes on with what is there and there is room.
    pub(crate) fn take(&mut self, at: Lsn, bytes: &[u8]) {
        if !self.takes {
            return;
        }
        let (from, to) = *self.filled.get_or_insert_with(|| {
            self.guard.reset(at.get());
            (at, at)
        });
        self.takes = to == at && self.put(bytes);
        self.filled = Some((from, to.advance(if self.takes { bytes.len() as u64 } else { 0 })));
    }

    /// Whether what is there ends at `end`, and begins at `start` or before.
    pub(crate) fn has(&self, start: Lsn, end: Lsn) -> bool {
        self.takes && self.filled.is_some_and(|(from, to)| from <= start && to == end)
    }

    /// Has the frames from `start` to `end` alone, read for it.
    pub(crate) fn read(
        &mut self,
        reader: &mut SpanReader<'_>,
        start: Lsn,
        end: Lsn,
    ) -> Result<(), OpenError> {
        self.guard.reset(start.get());
        let mut at = start;
        while at < end {
            let until = reader.geometry().span_end(at).min(end);
            assert!(self.put(reader.between(at, until)?), "an empty ring holds what fits");
            at = until;
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> bool {
        let Some(room) = self.guard.reserve(bytes.len() as u64) else { return false };
        room.copy_from_slice(bytes);
        self.guard.publish(bytes.len() as u64);
        true
    }
}

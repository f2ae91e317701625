//! Logging one change, when the home has room for it and its user has a turn.
//!
//! Promise: frames enter the log in the order in which their effects can be seen, and each counts
//! for whom it was logged.
//! Never: waits; that is for whoever is told why nothing was logged.

use holdfast_io::tree::{Errno, asker};
use holdfast_log::{AppendError, Appended};

use super::DirectoryVolume;
use crate::clean::frames::decode_names;
use crate::error::Stop;
use crate::frame::Frame;
use crate::home::space::{Charge, Cost};

/// Work that may wait for the home and is no bytes of the log, where it is not known how long the
/// ring is. Otherwise as much as the ring has.
const WORK_BYTES_MAX: u64 = 64 << 20;

/// One part in so many of the ring is kept for what may give the home room.
const KEPT_FRACTION: u64 = 16;

impl DirectoryVolume {
    /// Lets a change pass that costs the home so much, or says why not.
    pub(crate) fn admit(&self, cost: Cost) -> Result<Charge<'_>, Stop> {
        self.space.admit(&*self.home, &*self.clock, cost).map_err(|stop| match stop {
            // What waits may give room back of which the home does not know yet.
            Stop::Refused(Errno::NOSPC) if self.has_unapplied() => Stop::NoSpace,
            stop => stop,
        })
    }

    fn has_unapplied(&self) -> bool {
        let marks = self.log.marks();
        marks.released < marks.tail
    }

    /// Logs one frame without data. The caller holds the locks that order its effects.
    pub(crate) fn log_frame(&self, records: u16, payload: &[u8]) -> Result<Appended, Stop> {
        self.log_names(records, payload, 0, || self.has_turn(payload, &[]))
    }

    /// Logs one frame that may change names, which is more for the home than it is for the log
    /// where they do not go with what was changed before.
    fn log_names(
        &self,
        records: u16,
        payload: &[u8],
        unlogged_bytes: u64,
        has_turn: impl FnOnce() -> bool,
    ) -> Result<Appended, Stop> {
        let whole = decode_names(payload);
        // What may give the home room waits for no work that wants room.
        let is_short = self.space.shortage().is_some();
        let foreseen_bytes = if is_short { 0 } else { self.forecast.work_bytes(&whole) };
        self.admit_work(foreseen_bytes.max(unlogged_bytes))?;
        if !has_turn() {
            return Err(Stop::NoTurn);
        }
        let appended = self.append(records, payload, &[])?;
        let work_bytes = self.forecast.take(appended.lsn, &whole);
        self.placed(&appended, work_bytes.max(unlogged_bytes));
        Ok(appended)
    }

    /// Whether whom this thread works for may leave so much work to the home that is no bytes of
    /// the log.
    pub(crate) fn admit_work(&self, unlogged_bytes: u64) -> Result<(), Stop> {
        let work_bytes_max = self.log.ring_bytes().unwrap_or(WORK_BYTES_MAX);
        let may = |user| self.shares.may_leave_work(user, unlogged_bytes, work_bytes_max);
        if asker().user.is_none_or(may) { Ok(()) } else { Err(Stop::NoWork) }
    }

    /// The same for a frame about what a file holds, which may be more for the home than it is for
    /// the log.
    pub(crate) fn log_contents(&self, frame: &Frame<'_>, data: &[u8]) -> Result<Appended, Stop> {
        let unlogged_bytes = frame.unlogged_bytes;
        self.admit_work(unlogged_bytes)?;
        if !self.has_turn(&frame.payload, data) {
            return Err(Stop::NoTurn);
        }
        let appended = self.append(frame.records, &frame.payload, data)?;
        self.placed(&appended, unlogged_bytes);
        self.forecast.know(appended.lsn, frame.spot.node, frame.spot.path);
        Ok(appended)
    }

    /// The same for a frame that moves names. While somebody moves one to another directory the
    /// kernel lets nobody else do that in the whole mount: soon it is anybody's turn.
    pub(crate) fn log_move(
        &self,
        is_within: bool,
        records: u16,
        payload: &[u8],
        unlogged_bytes: u64,
    ) -> Result<Appended, Stop> {
        let goes = || self.shares.goes_out_of_turn(self.clock.monotonic_ns());
        let has_turn = || self.has_turn(payload, &[]) || !is_within && goes();
        self.log_names(records, payload, unlogged_bytes, has_turn)
    }

    /// Whether it is the turn of whom this thread works for. A part of the ring is nobody's turn:
    /// while the home has no room for what waits, what brings it no data goes there before all
    /// turns, because it may give room back.
    fn has_turn(&self, payload: &[u8], data: &[u8]) -> bool {
        let Some(user) = asker().user else { return true };
        if data.is_empty() && self.space.shortage().is_some() {
            return true;
        }
        let bytes = (payload.len() + data.len()) as u64;
        let kept_bytes = self.log.ring_bytes().unwrap_or(0) / KEPT_FRACTION;
        let free_bytes = self.free_bytes();
        free_bytes.is_none_or(|free| free >= bytes + kept_bytes)
            && self.shares.may_append(user, bytes, free_bytes)
    }

    /// Bytes of the ring that nobody has, if it is known how many it has.
    fn free_bytes(&self) -> Option<u64> {
        let marks = self.log.marks();
        let ring_bytes = self.log.ring_bytes()?;
        Some(ring_bytes.saturating_sub(marks.tail.since(marks.released)))
    }

    fn append(&self, records: u16, payload: &[u8], data: &[u8]) -> Result<Appended, Stop> {
        let bytes = (payload.len() + data.len()) as u64;
        self.log.append(records, &[payload, data]).map_err(|error| match error {
            AppendError::Full => Stop::NoRoom(bytes),
            AppendError::TooLarge { .. } => Stop::Refused(Errno::FBIG),
            _ => Stop::Refused(Errno::IO),
        })
    }

    /// Counts what was logged for whom this thread works for.
    fn placed(&self, appended: &Appended, unlogged_bytes: u64) {
        if let Some(user) = asker().user {
            let ring_bytes = appended.end.since(appended.lsn);
            self.shares.placed(user, appended.lsn, ring_bytes, unlogged_bytes);
        }
    }
}

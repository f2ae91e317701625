//! What can be done before anybody waits for it.
//!
//! Promise: with `prepare` called now and then, drains find their segments ready, and an idle log
//! has a watermark on the device above its last frame, so that damage to any acknowledged frame is
//! told from a torn tail.
//! Never: is needed for correctness. A drain does without.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::config::Retention;
use crate::error::CommitError;
use crate::outcome::Marks;
use crate::state::Log;
use crate::words;

/// Segments that should be ready: the one in use and two more.
const READY_WANTED: usize = 3;
/// With fewer than this, and nothing to recycle yet, a log that stays in its ring gets another
/// file. One that stays on its device grows anyway.
const READY_NEEDED: usize = 2;

impl Log {
    pub(crate) fn prepare_step(&self) -> Result<bool, CommitError> {
        if let Some(error) = &self.progress().poison {
            return Err(CommitError::Poisoned(Arc::clone(error)));
        }
        self.fail_if_stale().map_err(CommitError::Poisoned)?;
        self.region.populate_some();
        let prepared = self.prepare_segment()?;
        if !self.is_idle() {
            return Ok(prepared);
        }
        Ok(self.cover(self.marks()) || self.seal_partial()? || prepared)
    }

    /// Puts the newest watermark into the log if everything is durable and nothing says so yet.
    /// Returns whether it did; the mark is drained like any frame.
    pub(crate) fn cover(&self, marks: Marks) -> bool {
        let newest_end = self.word(words::NEWEST_END).load(Ordering::Relaxed);
        let covered = self.word(words::COVERED).load(Ordering::Relaxed);
        if marks.durable != marks.tail || newest_end <= covered {
            return false;
        }
        self.append_watermark().is_ok()
    }

    fn prepare_segment(&self) -> Result<bool, CommitError> {
        let number = self.geometry.segment_of(self.marks().durable);
        let ready = self.segments.ready_from(number);
        self.word(words::READY).store(ready as u64, Ordering::Relaxed);
        if ready >= READY_WANTED {
            return self.record_progress();
        }
        let needed = match self.retention {
            Retention::InRing => READY_NEEDED,
            Retention::OnDevice => READY_WANTED,
        };
        let prepared = self.segments.prepare_one(|| self.needs(), ready < needed);
        let prepared = self.prepared(prepared)?;
        self.word(words::PREPARED).fetch_add(u64::from(prepared), Ordering::Relaxed);
        Ok(prepared)
    }

    /// Writes the marks to the catalogue if a segment was filled since, without any having been
    /// prepared: a log that stays on its device is opened from there on.
    fn record_progress(&self) -> Result<bool, CommitError> {
        let recorded = self.geometry.segment_of(self.segments.recorded());
        let filled = recorded < self.geometry.segment_of(self.marks().durable);
        if self.retention == Retention::InRing || !filled {
            return Ok(false);
        }
        let below = self.segments.generations_below();
        let outcome = self.segments.record(|| self.needs(), below);
        self.prepared(outcome).map(|()| true)
    }

    /// Idle means: nothing was appended since the last call.
    fn is_idle(&self) -> bool {
        let tail = self.marks().tail.get();
        self.idle_tail.swap(tail, Ordering::Relaxed) == tail
    }
}

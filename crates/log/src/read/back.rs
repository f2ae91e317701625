//! Reading durable frames from the newest to the oldest.
//!
//! Frames do not say where the one before begins. So each span is read whole, walked once from its
//! beginning, and then given out from its end: a frame costs about twice what it costs a
//! [`Cursor`], and the reader has a span in memory, with the place of each of its frames.
//!
//! Promise: what a [`Cursor`] gives, in the opposite order.
//! Never: gives what lies behind damage in its span, because its places are not known.

use std::fmt;
use std::sync::Arc;

use holdfast_core::Lsn;

use crate::read::cursor::{Cursor, CursorError};
use crate::read::frames::Frame;
use crate::state::Log;

/// A reader of a log that goes backwards.
pub struct BackCursor {
    cursor: Cursor,
    /// Frames with records that lie in the cursor's window and are still to be given.
    places: Vec<Lsn>,
    /// What lies below has not been looked at.
    below: Lsn,
}

impl BackCursor {
    pub(crate) fn new(log: Arc<Log>, from: Lsn) -> BackCursor {
        let below = from.min(log.marks().durable);
        BackCursor { cursor: Cursor::new(log, below), places: Vec::new(), below }
    }

    /// The frame before, as its user appended it; None at the first that is needed.
    ///
    /// # Errors
    /// See [`CursorError`]. [`CursorError::Damaged`] also if it was to begin amid a frame.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CursorError> {
        while self.places.is_empty() {
            if self.below <= self.cursor.first() {
                return Ok(None);
            }
            self.below = self.cursor.walk_span_below(self.below, &mut self.places)?;
        }
        let place = self.places.pop().expect("there are places left");
        self.cursor.seek(place);
        self.cursor.next_frame()
    }

    /// The payload of the frame that was returned last; nothing if there is none.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.cursor.payload()
    }
}

impl fmt::Debug for BackCursor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("BackCursor").field("below", &self.below).finish_non_exhaustive()
    }
}

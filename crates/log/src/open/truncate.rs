//! Truncating an open log: everything from a position on is cut off.
//!
//! Promise: when it returns, what was cut off is gone from the device, too; after a crash on the
//! way it is gone as a whole or there as a whole. Whoever appends meanwhile is not kept from it,
//! and what they append behind the cut stays.
//! Never: gives a position to another frame.

use std::io;
use std::sync::Arc;

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;

use crate::config::Retention;
use crate::error::{CommitError, TruncateError};
use crate::format::buffer::Buffer;
use crate::read::cursor::{Cursor, CursorError};
use crate::segments::cut::Cut;
use crate::state::Log;

impl Log {
    /// See [`Log::truncate_after`].
    pub(crate) fn cut_after(self: &Arc<Self>, lsn: Lsn) -> Result<(), TruncateError> {
        assert!(self.retention == Retention::OnDevice, "the ring of others has what is cut off");
        let mut cutting = self.cuts.alone();
        let tail = self.marks().tail;
        if lsn > tail {
            return Err(TruncateError::NoBoundary { lsn });
        }
        // All of it, so that what lies behind the cut is of this open alone.
        self.commit_to(tail).map_err(TruncateError::NotDurable)?;
        // What is being drained may complete a stripe of which a part is cut off.
        let quiesced = self.mender.is_some().then(|| self.quiesce()).transpose();
        let quiesced = quiesced.map_err(TruncateError::NotDurable)?;
        let first = self.first();
        if lsn < first {
            return Err(TruncateError::Truncated { first });
        }
        let to = self.marks().durable;
        if lsn == to {
            return Ok(());
        }
        self.check_boundary(lsn)?;
        let cut = self.cut(lsn, to).map_err(TruncateError::Io)?;
        cutting.begin(lsn, first);
        let done = self.segments.cut(&cut, || self.needs(), &self.sealer, self.geometry);
        let done = done.and_then(|()| quiesced.map_or(Ok(()), |quiesced| quiesced.resume(to)));
        done.map_err(|error| {
            let error = self.poison(error);
            TruncateError::NotDurable(CommitError::Poisoned(error))
        })
    }

    /// A frame that begins or ends somewhere is found from the beginning of its span, even if the
    /// one behind is damaged: that may be why it is to be cut off.
    fn check_boundary(self: &Arc<Self>, lsn: Lsn) -> Result<(), TruncateError> {
        let span_start = lsn.align_down(self.geometry.span_bytes());
        if lsn == span_start || lsn == self.first() {
            return Ok(());
        }
        if self.segments.gaps().iter().any(|gap| gap.from < lsn && lsn < gap.to) {
            return Err(TruncateError::NoBoundary { lsn });
        }
        let walked = Cursor::new(Arc::clone(self), lsn).walk_span_below(lsn, &mut Vec::new());
        match walked {
            Ok(_) => Ok(()),
            Err(CursorError::Io(error)) => Err(TruncateError::Io(error)),
            Err(_) => Err(TruncateError::NoBoundary { lsn }),
        }
    }

    fn cut(&self, from: Lsn, to: Lsn) -> io::Result<Cut> {
        let start = from.align_down(BLOCK_BYTES);
        let segment = self.segments.find(self.geometry.segment_of(from));
        let segment = segment.ok_or(io::ErrorKind::NotFound)?;
        let mut read = Buffer::zeroed(BLOCK_BYTES as usize);
        segment.read(start, read.bytes_mut())?;
        self.rebuild(start, read.bytes_mut());
        let mut block = [0; BLOCK_BYTES as usize];
        let kept = from.since(start) as usize;
        block[..kept].copy_from_slice(&read.bytes()[..kept]);
        let (identity, utc_ns) = (self.segments.identity(), self.clock.utc_ns());
        let (generation, group) = (self.generation, Vec::new());
        let cut = Cut { identity, generation, from, to, utc_ns, block, group };
        let Some(mender) = &self.mender else { return Ok(cut) };
        let mut stripe = mender.whole(&segment, from.align_down(mender.stripe_bytes()));
        Ok(cut.with_group(&self.sealer, self.geometry, stripe.bytes_mut()))
    }
}

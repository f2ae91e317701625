//! Keeping flights on the ground, while what they wrote is written over.
//!
//! Promise: while a [`Quiesced`] is there, nothing is drained and no parity is written; then the
//! stripe that is being filled is what the device has. Appends go on.
//! Never: leaves anybody asleep who could take off.

use std::io;
use std::time::Duration;

use holdfast_core::Lsn;

use crate::error::CommitError;
use crate::format::stripe::Spec;
use crate::segments::parity::Stripes;
use crate::state::Log;

/// No flight takes off while this is there, and all that did have landed.
pub(crate) struct Quiesced<'a> {
    log: &'a Log,
}

impl Log {
    /// Waits until nothing is on the way, and keeps it so. The device has parity of all that is
    /// durable then.
    pub(crate) fn quiesce(&self) -> Result<Quiesced<'_>, CommitError> {
        self.check_opener().map_err(CommitError::Poisoned)?;
        self.progress().quiesced = true;
        let quiesced = Quiesced { log: self };
        let mut progress = self.progress();
        while progress.drain.durable() < progress.drain.assigned() && progress.poison.is_none() {
            progress = self.moved.listen(progress, Duration::MAX);
        }
        progress.failure()?;
        self.write_partial(progress)?;
        Ok(quiesced)
    }
}

impl Quiesced<'_> {
    /// Goes on with the stripe in which `durable` lies, all that is durable, as the device has it.
    pub(crate) fn resume(&self, durable: Lsn) -> io::Result<()> {
        let Log { segments, geometry, generation, .. } = self.log;
        let (identity, segment_bytes) = (segments.identity(), geometry.segment_bytes());
        let spec = Spec { identity, generation: *generation, segment_bytes };
        let segment = segments.find(geometry.segment_of(durable));
        let stripes = Stripes::resume(segment.as_ref(), spec, geometry, durable)?;
        self.log.progress().stripes = Some(stripes);
        Ok(())
    }
}

impl Drop for Quiesced<'_> {
    fn drop(&mut self) {
        let mut progress = self.log.progress();
        progress.quiesced = false;
        self.log.tell(progress);
    }
}

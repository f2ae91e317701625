//! What an open would find, and whether it would go on.
//!
//! Promise: asks what an open asks, in its order, of the same functions; nothing is changed, and
//! the region may be read-only.
//! Never: claims the region.

use holdfast_core::Lsn;
use holdfast_io::Files;
use holdfast_memory::Observed;

use crate::config::{LogConfig, Policy};
use crate::error::OpenError;
use crate::open::check::{CheckedRing, walk_ring};
use crate::open::give::refuse_lost;
use crate::range::LsnRange;
use crate::repair::verify::{CheckVerdict, Verified, verify};

/// What the next open of a log finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Foreseen {
    /// The ring that it goes on from, if it does not go on from the segments alone.
    pub ring: Option<CheckedRing>,
    /// From here on frames are handed to the reader.
    pub released: Lsn,
    /// Up to here it counts as durable.
    pub durable: Lsn,
    /// Where it ends.
    pub tail: Lsn,
}

/// See [`crate::Log::foresee`].
pub(crate) fn foresee(
    files: &dyn Files,
    region: Option<&Observed>,
    config: &LogConfig,
) -> Result<Foreseen, OpenError> {
    let walked = region.map_or(Ok(None), |seen| walk_ring(files, seen, &mut |_| {}))?;
    let Some(mut walked) = walked else { return of_segments(files, config) };
    let ring = walked.checked;
    let (released, durable, tail) = (walked.marked, ring.marks.durable, ring.marks.tail);
    if let Some(from) = ring.lost {
        return Err(OpenError::Corrupt { from, to: tail });
    }
    if ring.healable.is_none() {
        refuse_lost(&mut walked.table, config.retention, released)?;
        return Ok(Foreseen { ring: Some(ring), released, durable, tail });
    }
    // What the ring has beyond is drained before the segments are read.
    let healed = has_all(files, durable, config.policy)?;
    let released = healed.released.max(released);
    Ok(Foreseen { ring: Some(ring), released, durable: tail, tail })
}

fn of_segments(files: &dyn Files, config: &LogConfig) -> Result<Foreseen, OpenError> {
    let Verified { released, durable, end, .. } = has_all(files, Lsn::ZERO, config.policy)?;
    Ok(Foreseen { ring: None, released, durable, tail: end })
}

/// Reads the segments, which have to have everything below `upto`; damage that the policy has a way
/// on from is left to whoever opens them.
pub(crate) fn has_all(files: &dyn Files, upto: Lsn, policy: Policy) -> Result<Verified, OpenError> {
    let found = verify(files, &mut |_| {})?;
    let lost = match found.verdict {
        CheckVerdict::Corrupt { from, to } => Some(LsnRange { from, to }),
        _ if found.end < upto => Some(LsnRange { from: found.end, to: upto }),
        _ => None,
    };
    match lost.filter(|_| policy == Policy::Refuse) {
        Some(LsnRange { from, to }) => Err(OpenError::Corrupt { from, to }),
        None => Ok(found),
    }
}

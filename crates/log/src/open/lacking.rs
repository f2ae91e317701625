//! What the device lacks of what the ring has and a mark says is durable.
//!
//! A segment that is gone, short, too long, full of zeros, an older copy, or damaged in any other
//! way says nothing of itself that can be trusted: what it should have is in the ring, as long as
//! the reader has not got it.
//!
//! Promise: all bytes between two positions of the ring are compared with the device's; what cannot
//! be read lacks.
//! Never: writes; looks at what the ring no longer has.

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;
use holdfast_core::ring::Geometry;

use crate::error::OpenError;
use crate::format::buffer::Buffer;
use crate::range::LsnRange;
use crate::segments::Table;

/// Copies bytes out of a ring.
pub(crate) type FromRing<'a> = dyn FnMut(Lsn, &mut [u8]) -> Result<(), OpenError> + 'a;

/// The stretches between `from` and `to` that the device does not have as the ring has them, in
/// order; each lies in one span.
pub(crate) fn lacking(
    table: &Table,
    geometry: Geometry,
    (from, to): (Lsn, Lsn),
    ring: &mut FromRing<'_>,
) -> Result<Vec<LsnRange>, OpenError> {
    let (mut found, mut at) = (Vec::new(), from);
    while at < to {
        let end = geometry.span_end(at).min(to);
        let mut own = vec![0; end.since(at) as usize];
        ring(at, &mut own)?;
        of_span(table, geometry, (at, end), &own, &mut found);
        at = end;
    }
    Ok(found)
}

/// Adds what is lacking of `own`, which lies from `at` to `end`, in one span.
fn of_span(
    table: &Table,
    geometry: Geometry,
    (at, end): (Lsn, Lsn),
    own: &[u8],
    found: &mut Vec<LsnRange>,
) {
    let start = at.align_down(BLOCK_BYTES);
    let mut blocks = Buffer::zeroed(end.align_up(BLOCK_BYTES).since(start) as usize);
    let number = geometry.segment_of(at);
    let slot = table.slots.iter().find(|slot| slot.entry.number == number);
    let Some(slot) = slot else {
        found.push(LsnRange { from: at, to: end });
        return;
    };
    let unread = slot.segment.salvage(start, blocks.bytes_mut());
    let mut from = at;
    for index in 0.. {
        let to = from.advance(1).align_up(BLOCK_BYTES).min(end);
        let device = &blocks.bytes()[from.since(start) as usize..to.since(start) as usize];
        let is_there = *device == own[from.since(at) as usize..to.since(at) as usize];
        if !is_there || unread.contains(&index) {
            add(found, start, LsnRange { from, to });
        }
        if to == end {
            return;
        }
        from = to;
    }
}

/// Neighbours in one span are one stretch.
fn add(found: &mut Vec<LsnRange>, start: Lsn, stretch: LsnRange) {
    match found.last_mut().filter(|last| last.to == stretch.from && last.from >= start) {
        Some(last) => last.to = stretch.to,
        None => found.push(stretch),
    }
}

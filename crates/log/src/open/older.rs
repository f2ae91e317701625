//! A region that is a copy of an earlier moment.
//!
//! Frames come to the device from the ring alone, and only from below its tail. A frame of this log
//! at the tail, or a mark in the catalogue above those of the region, was brought there by a later
//! state of the region.
//!
//! Promise: with a region whose tail lies below what the device holds, a log is not opened.
//! Never: writes; takes what an earlier round left in a segment file for a frame at its place.

use holdfast_core::Lsn;
use holdfast_core::frame::{BLOCK_BYTES, Sealer, decode};
use holdfast_core::ring::Geometry;

use crate::error::OpenError;
use crate::format::buffer::Buffer;
use crate::segments::Table;

/// Fails if the device has more than a ring that ends at `tail` can have given it.
pub(crate) fn refuse_older(
    table: &Table,
    (sealer, geometry): (&Sealer, Geometry),
    durable: Lsn,
    tail: Lsn,
) -> Result<(), OpenError> {
    let recorded = table.catalogue.durable.max(table.catalogue.first);
    let older = |log| Err(OpenError::OlderRegion { region: tail, log });
    if recorded > durable {
        return older(recorded);
    }
    frame_at(table, (sealer, geometry), tail)?.map_or(Ok(()), older)
}

/// The end of the frame that the device has there, if it has one.
fn frame_at(
    table: &Table,
    (sealer, geometry): (&Sealer, Geometry),
    at: Lsn,
) -> Result<Option<Lsn>, OpenError> {
    let number = geometry.segment_of(at);
    let slot = table.slots.iter().find(|slot| slot.entry.number == number && slot.ready);
    let Some(slot) = slot else { return Ok(None) };
    let (start, mut block) = (at.align_down(BLOCK_BYTES), Buffer::zeroed(BLOCK_BYTES as usize));
    slot.segment.read(start, block.bytes_mut()).map_err(OpenError::Io)?;
    let head = block.bytes()[at.since(start) as usize..].first_chunk();
    let header = decode(sealer, head.expect("no header lies across the end of a block")).ok();
    Ok(header.filter(|header| header.lsn == at).map(|header| header.end()))
}

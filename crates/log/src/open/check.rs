//! Looking at the ring of a log without taking it into use.
//!
//! Promise: every frame that is still needed is read, header and payload; damage is named by
//! position. Nothing is changed, and the region may be read-only.
//! Never: claims the region.

use holdfast_core::Lsn;
use holdfast_core::frame::{
    FrameHeader, HEADER_BYTES, Kind, Sealer, decode, decode_mark, payload_matches,
};
use holdfast_core::handover::{Walk, check_marks};
use holdfast_core::ring::Geometry;
use holdfast_io::Files;
use holdfast_io::checksum::crc32c;
use holdfast_memory::Observed;

use crate::error::OpenError;
use crate::open::lacking::lacking;
use crate::open::load::{is_of_step, load_what_is_left};
use crate::open::older::refuse_older;
use crate::read::frames::Frame;
use crate::segments::Table;
use crate::segments::segment::Access;
use crate::words;

/// What a region's ring holds of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedRing {
    /// Whole frames, marks and padding included.
    pub frames: u64,
    /// Bytes from the oldest frame that is needed to the newest.
    pub bytes_scanned: u64,
    /// The first damaged frame at or above the durable mark: nothing else has it.
    pub lost: Option<Lsn>,
    /// The first damaged frame below the durable mark: the segments have it, and the next open
    /// takes it from there.
    pub healable: Option<Lsn>,
    /// The first place below the durable mark that the device does not have as the ring has it: the
    /// next open writes it again.
    pub lacking: Option<Lsn>,
    /// How far the log is released, durable and there, as the next open has it.
    pub marks: CheckedMarks,
}

/// How far a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedMarks {
    /// Everything below is in the reader's hands.
    pub released: Lsn,
    /// Everything below was on the device.
    pub durable: Lsn,
    /// Everything below was acknowledged, or about to be.
    pub tail: Lsn,
}

/// What a walk over a ring has come to.
pub(crate) struct WalkedRing {
    pub(crate) checked: CheckedRing,
    /// The newest of what its reader said it has got.
    pub(crate) marked: Lsn,
    /// The log's files.
    pub(crate) table: Table,
}

/// See [`crate::Log::check_ring`].
pub(crate) fn check_ring(
    files: &dyn Files,
    seen: &Observed,
) -> Result<Option<CheckedRing>, OpenError> {
    Ok(walk_ring(files, seen, &mut |_| {})?.map(|walked| walked.checked))
}

/// [`check_ring`] that shows the frames with records.
pub(crate) fn walk_ring(
    files: &dyn Files,
    seen: &Observed,
    each: &mut dyn FnMut(&Frame<'_>),
) -> Result<Option<WalkedRing>, OpenError> {
    let table = load_what_is_left(files, Access::Read)?;
    let catalogue = &table.catalogue;
    let (region, log) = (seen.identity(), catalogue.identity);
    if region != log {
        return Err(OpenError::ForeignRegion { region, log });
    }
    let generation = seen.word(words::GENERATION);
    if generation == 0 {
        return Ok(None);
    }
    is_of_step(catalogue.generations_below, generation)?;
    let ring_bytes = seen.ring_bytes();
    let needed_bytes = 2 * catalogue.segment_bytes;
    let geometry = Geometry::new(ring_bytes, catalogue.segment_bytes)
        .ok_or(OpenError::RingTooSmall { ring_bytes, needed_bytes })?;
    let marks = seen.marks();
    let (released, durable, tail) = (Lsn(marks.released), Lsn(marks.durable), Lsn(marks.tail));
    check_marks(&geometry, released, durable, tail).map_err(OpenError::Marks)?;
    let sealer = Sealer::new(&log, crc32c);
    refuse_older(&table, (&sealer, geometry), durable, tail)?;
    // As an open has it: the reader may have died between its mark and the release.
    let released = Lsn(marks.released.max(seen.word(words::MARKED)).min(marks.durable));
    let marked = released.max(catalogue.first);
    let mut ring = Ring { seen, sealer, payload: Vec::new(), frames: 0, marked, each };
    let healable = ring.first_damaged(Walk::new(geometry, released, durable))?;
    let lost = ring.first_damaged(Walk::new(geometry, durable, tail))?;
    let (frames, bytes_scanned, marked) = (ring.frames, tail.since(released), ring.marked);
    let lacking = match healable {
        Some(_) => None,
        None => first_lacking(&table, geometry, (released, durable), seen)?,
    };
    let marks = CheckedMarks { released, durable, tail };
    let checked = CheckedRing { frames, bytes_scanned, lost, healable, lacking, marks };
    Ok(Some(WalkedRing { checked, marked, table }))
}

fn first_lacking(
    table: &Table,
    geometry: Geometry,
    between: (Lsn, Lsn),
    seen: &Observed,
) -> Result<Option<Lsn>, OpenError> {
    let mut copy = |at: Lsn, into: &mut [u8]| copy_out(seen, at, into);
    Ok(lacking(table, geometry, between, &mut copy)?.first().map(|stretch| stretch.from))
}

/// Only a process that serves the region meanwhile can make this fail.
fn copy_out(seen: &Observed, at: Lsn, into: &mut [u8]) -> Result<(), OpenError> {
    seen.copy_bytes(at.get(), into).map_err(|_| OpenError::InUse)
}

/// A ring under inspection, read by copies.
struct Ring<'a, 'b> {
    seen: &'a Observed,
    sealer: Sealer,
    payload: Vec<u8>,
    frames: u64,
    marked: Lsn,
    each: &'a mut (dyn FnMut(&Frame<'_>) + 'b),
}

impl Ring<'_, '_> {
    fn first_damaged(&mut self, mut walk: Walk) -> Result<Option<Lsn>, OpenError> {
        while let Some(at) = walk.at() {
            if !self.step_over(&mut walk, at)? {
                return Ok(Some(at));
            }
            self.frames += 1;
        }
        Ok(None)
    }

    fn step_over(&mut self, walk: &mut Walk, at: Lsn) -> Result<bool, OpenError> {
        let mut head = [0; HEADER_BYTES as usize];
        self.copy(at, &mut head)?;
        let Ok(header) = decode(&self.sealer, &head) else { return Ok(false) };
        if !walk.fits(&header) {
            return Ok(false);
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(header.payload_bytes as usize, 0);
        self.copy(header.payload_lsn(), &mut payload)?;
        let whole = payload_matches(&self.sealer, &header, &payload);
        if whole {
            self.show(header, &payload);
            walk.step(&header);
        }
        self.payload = payload;
        Ok(whole)
    }

    fn show(&mut self, header: FrameHeader, payload: &[u8]) {
        if header.kind == Kind::Mark {
            self.marked = decode_mark(payload).map_or(self.marked, |at| self.marked.max(at));
        }
        let frame = Frame { header, payload, payload_lsn: header.payload_lsn() };
        frame.of_user().iter().for_each(&mut *self.each);
    }

    fn copy(&self, at: Lsn, into: &mut [u8]) -> Result<(), OpenError> {
        copy_out(self.seen, at, into)
    }
}

//! Looking at a whole log without taking it into use.
//!
//! Promise: every frame that is still needed is read, header and payload, by the code that would
//! recover it; damage is named by position, file and offset. Nothing is changed, on a device or in
//! a region, and both may be read-only.
//! Never: repairs; calls the remains of an unacknowledged write damage.

use std::io;

use holdfast_core::Lsn;
use holdfast_core::frame::{BLOCK_BYTES, HEADER_BYTES, Sealer, decode, payload_matches};
use holdfast_core::handover::{Walk, check_marks};
use holdfast_core::recovery::Verdict as End;
use holdfast_core::ring::Geometry;
use holdfast_io::Files;
use holdfast_io::checksum::crc32c;
use holdfast_memory::Observed;

use crate::catalogue::Catalogue;
use crate::cut::Cut;
use crate::error::OpenError;
use crate::open::{Access, is_of_step, load_table};
use crate::recovery::{SpanReader, scan};
use crate::segment::segment_name;
use crate::segments::Table;
use crate::words;

/// No ring bounds a log that is read from its segments alone.
const UNBOUNDED: u64 = 1 << 63;

/// What the segments of a log hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Whole frames, one after the other; marks and padding are frames, too.
    pub frames: u64,
    /// Bytes read from the segment files.
    pub bytes_scanned: u64,
    /// Where the first frame starts that is still needed.
    pub first: Lsn,
    /// Where the last whole frame ends.
    pub end: Lsn,
    /// How it ends there.
    pub verdict: CheckVerdict,
    /// The file that holds `end`, unless the last segment is full.
    pub place: Option<FilePlace>,
}

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckVerdict {
    /// Nothing lies behind the last frame.
    Clean,
    /// Remains of a write that was never acknowledged lie there. Legal after a power cut; the next
    /// open cuts them off.
    Torn {
        /// Where they start.
        at: Lsn,
    },
    /// Acknowledged bytes are damaged. The log does not open from its segments.
    Corrupt {
        /// First position lost.
        from: Lsn,
        /// First position known to be good again, or the watermark that proves the loss.
        to: Lsn,
    },
}

/// Where in the log's directory a position lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePlace {
    /// Name of the segment file.
    pub file: String,
    /// Bytes from its start.
    pub offset: u64,
}

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
}

/// See [`crate::Log::check`].
pub(crate) fn check(files: &dyn Files) -> Result<Checked, OpenError> {
    let table = load_table(files, Access::Read)?;
    let geometry = segments_alone(&table.catalogue);
    let mut reader = SpanReader::new(&table, geometry);
    let sealer = Sealer::new(&table.catalogue.identity, crc32c);
    if let Some(cut) = Cut::load(files, table.catalogue.identity)? {
        reader.show_cut(cut, sealer);
    }
    let found = match scan(&mut reader, &sealer, table.catalogue.first) {
        Err(OpenError::Io(error)) => {
            return Err(OpenError::Io(named(&table, reader.reading(), &error)));
        }
        found => found?,
    };
    let (end, verdict) = match found.verdict {
        End::Clean { end } => (end, CheckVerdict::Clean),
        End::Torn { end } => (end, CheckVerdict::Torn { at: end }),
        End::Corrupt { from, to } => (from, CheckVerdict::Corrupt { from, to }),
    };
    Ok(Checked {
        frames: found.frames,
        bytes_scanned: found.bytes_scanned,
        first: table.catalogue.first,
        end,
        verdict,
        place: place_of(&table, end),
    })
}

fn segments_alone(catalogue: &Catalogue) -> Geometry {
    let geometry = Geometry::new(UNBOUNDED, catalogue.segment_bytes);
    geometry.expect("a catalogue is refused unless its segments have a size that logs have")
}

fn place_of(table: &Table, lsn: Lsn) -> Option<FilePlace> {
    let segment_bytes = table.catalogue.segment_bytes;
    let number = lsn.get() / segment_bytes;
    let entry = table.catalogue.entries.iter().find(|entry| entry.number == number)?;
    let offset = BLOCK_BYTES + lsn.offset_in(segment_bytes);
    Some(FilePlace { file: segment_name(entry.file), offset })
}

/// An error of reading, with the place at which it struck.
fn named(table: &Table, at: Lsn, error: &io::Error) -> io::Error {
    let place = place_of(table, at).expect("only listed segments are read");
    let FilePlace { file, offset } = place;
    io::Error::new(error.kind(), format!("reading {file} from byte {offset}: {error}"))
}

/// See [`crate::Log::check_ring`].
pub(crate) fn check_ring(
    files: &dyn Files,
    seen: &Observed,
) -> Result<Option<CheckedRing>, OpenError> {
    let catalogue = Catalogue::load(files)?;
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
    // As an open has it: the reader may have died between its mark and the release.
    let released = Lsn(marks.released.max(seen.word(words::MARKED)).min(marks.durable));
    let mut ring = Ring { seen, sealer: Sealer::new(&log, crc32c), payload: Vec::new(), frames: 0 };
    let healable = ring.first_damaged(Walk::new(geometry, released, durable))?;
    let lost = ring.first_damaged(Walk::new(geometry, durable, tail))?;
    let (frames, bytes_scanned) = (ring.frames, tail.since(released));
    Ok(Some(CheckedRing { frames, bytes_scanned, lost, healable }))
}

/// A ring under inspection, read by copies.
struct Ring<'a> {
    seen: &'a Observed,
    sealer: Sealer,
    payload: Vec<u8>,
    frames: u64,
}

impl Ring<'_> {
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
        self.payload = payload;
        if whole {
            walk.step(&header);
        }
        Ok(whole)
    }

    /// Only a process that serves the region meanwhile can make this fail.
    fn copy(&self, at: Lsn, into: &mut [u8]) -> Result<(), OpenError> {
        self.seen.copy_bytes(at.get(), into).map_err(|_| OpenError::InUse)
    }
}

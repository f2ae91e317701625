//! The bytes of a log in its segments, a span at a time, because no frame crosses one; some more
//! are read ahead if there are many.
//!
//! Promise: what was mended is laid over what the device gives; an I/O error is one, unless whoever
//! reads wants blocks that cannot be read taken for damaged ones.
//! Never: writes; knows what a frame is.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use holdfast_core::Lsn;
use holdfast_core::frame::{BLOCK_BYTES, Sealer};
use holdfast_core::ring::Geometry;
use holdfast_io::checksum::crc32c;

use crate::error::OpenError;
use crate::range::LsnRange;
use crate::read::ahead::Piece;
use crate::read::window::Window;
use crate::segments::Table;
use crate::segments::reconstruct::Mender;
use crate::segments::segment::Segment;

/// Reads spans.
pub(crate) struct SpanReader<'a> {
    table: &'a Table,
    geometry: Geometry,
    window: Window,
    bytes_read: u64,
    reading: Lsn,
    mender: Option<Mender>,
    patches: BTreeMap<Lsn, Vec<u8>>,
    mended: Vec<LsnRange>,
    salvages: bool,
    streams: bool,
    unread: BTreeSet<Lsn>,
    first_error: Option<io::Error>,
}

impl<'a> SpanReader<'a> {
    pub(crate) fn new(table: &'a Table, geometry: Geometry) -> SpanReader<'a> {
        SpanReader {
            table,
            geometry,
            window: Window::new(),
            bytes_read: 0,
            reading: Lsn(0),
            mender: Mender::of(table, geometry),
            patches: BTreeMap::new(),
            mended: Vec::new(),
            salvages: false,
            streams: false,
            unread: BTreeSet::new(),
            first_error: None,
        }
    }

    /// One that takes blocks which cannot be read for damaged ones.
    pub(crate) fn salvaging(table: &'a Table, geometry: Geometry) -> SpanReader<'a> {
        SpanReader { salvages: true, ..SpanReader::new(table, geometry) }
    }

    /// The same, for a walk that does not write back what it mends.
    pub(crate) fn streaming(table: &'a Table, geometry: Geometry) -> SpanReader<'a> {
        SpanReader { streams: true, ..SpanReader::salvaging(table, geometry) }
    }

    /// Whose bytes they are.
    pub(crate) fn table(&self) -> &'a Table {
        self.table
    }

    /// The sizes of the log.
    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// One past the last position that the segments have a place for.
    pub(crate) fn limit(&self) -> Lsn {
        self.table.catalogue.limit()
    }

    /// Where the last read began.
    pub(crate) fn reading(&self) -> Lsn {
        self.reading
    }

    /// What was mended, in order.
    pub(crate) fn mended(&self) -> &[LsnRange] {
        &self.mended
    }

    /// The blocks that were mended, in order.
    pub(crate) fn patches(&self) -> &BTreeMap<Lsn, Vec<u8>> {
        &self.patches
    }

    /// Nothing below the span of `lsn` is read again.
    pub(crate) fn passed(&mut self, lsn: Lsn) {
        if self.streams && !self.patches.is_empty() {
            self.patches = self.patches.split_off(&lsn.align_down(self.geometry.span_bytes()));
        }
    }

    /// A block outside of these stretches that could not be read and was not mended, if there is
    /// one, and the first error.
    pub(crate) fn unread_outside(&mut self, lost: &[LsnRange]) -> Option<(Lsn, io::Error)> {
        let is_lost = |at: &Lsn| lost.iter().any(|lost| lost.from <= *at && *at < lost.to);
        let at = self.unread.iter().find(|at| !is_lost(at)).copied()?;
        Some((at, self.first_error.take()?))
    }

    /// The bytes from `lsn` to the end of its span.
    #[inline]
    pub(crate) fn from(&mut self, lsn: Lsn) -> Result<&[u8], OpenError> {
        let end = self.geometry.span_end(lsn);
        if self.window.from(lsn).len() as u64 != end.since(lsn) {
            self.load_span(lsn.align_down(self.geometry.span_bytes()), end)?;
        }
        Ok(self.window.from(lsn))
    }

    /// The bytes between two positions of one span. Nothing is read for later.
    pub(crate) fn between(&mut self, from: Lsn, to: Lsn) -> Result<&[u8], OpenError> {
        let bytes = to.since(from) as usize;
        if self.window.from(from).len() < bytes {
            self.load(from.align_down(BLOCK_BYTES), to.align_up(BLOCK_BYTES), &|_| None)?;
        }
        Ok(&self.window.from(from)[..bytes])
    }

    /// Mends from the stripe of `lsn` to the end of its span what parity can give back below
    /// `proved`. Returns whether that changed anything.
    pub(crate) fn mend(&mut self, lsn: Lsn, proved: Lsn) -> Result<bool, OpenError> {
        self.from(lsn.align_down(self.geometry.span_bytes()))?;
        let Some(mender) = &self.mender else { return Ok(false) };
        let from = lsn.align_down(mender.stripe_bytes());
        let segment = segment_at(self.table, self.geometry, from);
        let mended = mender.mend(&segment, from, self.window.change_from(from), proved);
        let before = self.patches.len();
        mended.into_iter().for_each(|at| self.patch(at));
        Ok(self.patches.len() > before)
    }

    fn patch(&mut self, at: Lsn) {
        let block = self.window.from(at)[..BLOCK_BYTES as usize].to_vec();
        self.unread.remove(&at);
        if self.patches.insert(at, block).is_none() {
            join(&mut self.mended, LsnRange { from: at, to: at.advance(BLOCK_BYTES) });
        }
    }

    #[cold]
    fn load_span(&mut self, from: Lsn, to: Lsn) -> Result<(), OpenError> {
        let (table, geometry, limit) = (self.table, self.geometry, self.limit());
        let (durable, segment) = (table.catalogue.durable, geometry.segment_of(from));
        let next = |lsn: Lsn| {
            let from = lsn.align_up(geometry.span_bytes());
            let to = geometry.span_end(from);
            let piece = || Piece { segment: segment_at(table, geometry, from), from, to };
            // The log may end before others, and who opens it would wait for them in vain.
            let is_wanted = from < durable || geometry.segment_of(from) == segment;
            (to <= limit && is_wanted).then(piece)
        };
        self.load(from, to, &next)
    }

    fn load(
        &mut self,
        from: Lsn,
        to: Lsn,
        next: &dyn Fn(Lsn) -> Option<Piece>,
    ) -> Result<(), OpenError> {
        let piece = Piece { segment: segment_at(self.table, self.geometry, from), from, to };
        (self.bytes_read, self.reading) = (self.bytes_read + to.since(from), from);
        if let Err(error) = self.window.load(&piece, to, next) {
            if !self.salvages {
                return Err(OpenError::Io(error));
            }
            self.unread.extend(self.window.salvage(&piece));
            self.first_error.get_or_insert(error);
        }
        if let Some(again) = &self.table.again {
            again.overlay(from, self.window.change_from(from));
        }
        if let Some(cut) = &self.table.cut {
            let sealer = Sealer::new(&self.table.catalogue.identity, crc32c);
            cut.overlay(&sealer, self.geometry, from, self.window.change_from(from));
        }
        for (at, block) in self.patches.range(from..to) {
            self.window.change_from(*at)[..block.len()].copy_from_slice(block);
        }
        Ok(())
    }
}

/// The segment at a position between the first and the limit.
fn segment_at(table: &Table, geometry: Geometry, at: Lsn) -> Segment {
    let number = geometry.segment_of(at);
    let slot = table.slots.iter().find(|slot| slot.entry.number == number);
    slot.expect("the caller stays between the first position and the limit").segment.clone()
}

/// Adds a stretch to others, and to the last of them if they meet.
pub(crate) fn join(stretches: &mut Vec<LsnRange>, next: LsnRange) {
    match stretches.last_mut() {
        Some(last) if last.to == next.from => last.to = next.to,
        _ => stretches.push(next),
    }
}

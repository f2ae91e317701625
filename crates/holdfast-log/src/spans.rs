//! The bytes of a log in its segments, a span at a time, because no frame crosses one.
//!
//! Promise: what was mended is laid over what the device gives; an I/O error is one, unless whoever
//! reads wants blocks that cannot be read taken for damaged ones.
//! Never: writes; knows what a frame is.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;
use holdfast_core::ring::Geometry;

use crate::buffer::Buffer;
use crate::error::OpenError;
use crate::log::Stretch;
use crate::rebuild::Mender;
use crate::segment::Segment;
use crate::segments::Table;

/// How much of each span further on is looked at for witnesses. A span that was drained begins with
/// a frame; the rest is for when that one is damaged, too.
const GLANCE_BYTES: u64 = 64 << 10;

/// Reads spans.
pub(crate) struct SpanReader<'a> {
    table: &'a Table,
    geometry: Geometry,
    buffer: Buffer,
    loaded: Option<Lsn>,
    bytes_read: u64,
    reading: Lsn,
    mender: Option<Mender>,
    patches: BTreeMap<Lsn, Vec<u8>>,
    mended: Vec<Stretch>,
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
            buffer: Buffer::zeroed(geometry.span_bytes() as usize),
            loaded: None,
            bytes_read: 0,
            reading: Lsn(0),
            mender: Mender::of(&table.catalogue, &geometry),
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
        let last = self.table.catalogue.entries.last().expect("a catalogue lists segments");
        self.geometry.segment_start(last.number + 1)
    }

    /// Where the last read began.
    pub(crate) fn reading(&self) -> Lsn {
        self.reading
    }

    /// What was mended, in order.
    pub(crate) fn mended(&self) -> &[Stretch] {
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
    pub(crate) fn unread_outside(&mut self, lost: &[Stretch]) -> Option<(Lsn, io::Error)> {
        let is_lost = |at: &Lsn| lost.iter().any(|lost| lost.from <= *at && *at < lost.to);
        let at = self.unread.iter().find(|at| !is_lost(at)).copied()?;
        Some((at, self.first_error.take()?))
    }

    /// The bytes from `lsn` to the end of its span.
    pub(crate) fn from(&mut self, lsn: Lsn) -> Result<&[u8], OpenError> {
        let start = lsn.align_down(self.geometry.span_bytes());
        self.load_span(start)?;
        Ok(&self.buffer.bytes()[lsn.since(start) as usize..])
    }

    /// The first bytes of the span that starts at `start`.
    pub(crate) fn glance(&mut self, start: Lsn) -> Result<&[u8], OpenError> {
        self.loaded = None;
        let bytes = GLANCE_BYTES.min(self.geometry.span_bytes());
        self.load(start, bytes)?;
        Ok(&self.buffer.bytes()[..bytes as usize])
    }

    /// Mends from the stripe of `lsn` to the end of its span what parity can give back below
    /// `proved`. Returns whether that changed anything.
    pub(crate) fn mend(&mut self, lsn: Lsn, proved: Lsn) -> Result<bool, OpenError> {
        let start = lsn.align_down(self.geometry.span_bytes());
        self.load_span(start)?;
        let Some(mender) = &self.mender else { return Ok(false) };
        let from = lsn.align_down(mender.stripe_bytes());
        let (segment, skipped) = (self.segment(start).clone(), from.since(start) as usize);
        let bytes = &mut self.buffer.bytes_mut()[skipped..];
        let mended = mender.mend(&segment, from, bytes, proved);
        let before = self.patches.len();
        for at in mended {
            self.patch(start, at);
        }
        Ok(self.patches.len() > before)
    }

    fn patch(&mut self, start: Lsn, at: Lsn) {
        let block = &self.buffer.bytes()[at.since(start) as usize..][..BLOCK_BYTES as usize];
        self.unread.remove(&at);
        if self.patches.insert(at, block.to_vec()).is_none() {
            join(&mut self.mended, Stretch { from: at, to: at.advance(BLOCK_BYTES) });
        }
    }

    fn load_span(&mut self, start: Lsn) -> Result<(), OpenError> {
        if self.loaded != Some(start) {
            self.loaded = None;
            self.load(start, self.geometry.span_bytes())?;
            self.loaded = Some(start);
        }
        Ok(())
    }

    fn load(&mut self, start: Lsn, bytes: u64) -> Result<(), OpenError> {
        let segment = self.segment(start).clone();
        let into = &mut self.buffer.bytes_mut()[..bytes as usize];
        (self.bytes_read, self.reading) = (self.bytes_read + bytes, start);
        if let Err(error) = segment.read(start, into) {
            if !self.salvages {
                return Err(OpenError::Io(error));
            }
            let unread = segment.salvage(start, into);
            self.unread.extend(unread.iter().map(|block| start.advance(block * BLOCK_BYTES)));
            self.first_error.get_or_insert(error);
        }
        for (at, block) in self.patches.range(start..start.advance(bytes)) {
            into[at.since(start) as usize..][..block.len()].copy_from_slice(block);
        }
        Ok(())
    }

    fn segment(&self, lsn: Lsn) -> &'a Segment {
        let number = self.geometry.segment_of(lsn);
        let slot = self.table.slots.iter().find(|slot| slot.entry.number == number);
        &slot.expect("the caller stays between the first position and the limit").segment
    }
}

/// Adds a stretch to others, and to the last of them if they meet.
pub(crate) fn join(stretches: &mut Vec<Stretch>, next: Stretch) {
    match stretches.last_mut() {
        Some(last) if last.to == next.from => last.to = next.to,
        _ => stretches.push(next),
    }
}

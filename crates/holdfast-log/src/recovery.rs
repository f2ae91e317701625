//! Finding the end of a log in its segments.
//!
//! Feeds the scan of `holdfast-core` with what lies in the files. A span is read at a time, because
//! no frame crosses one, and some more are read ahead if there are many.
//!
//! Promise: reads only; memory for a few spans, however long the log; an I/O error ends it with
//! that error.
//! Never: decides. The scan does.

use holdfast_core::Lsn;
use holdfast_core::frame::{
    FRAME_ALIGN, FRAME_MAGIC, FrameHeader, HEADER_BYTES, Kind, Sealer, are_zeros, decode,
    decode_mark, payload_matches,
};
use holdfast_core::recovery::{Scan, Seen, Step, Verdict};
use holdfast_core::ring::Geometry;

use crate::ahead::Stretch;
use crate::catalogue::Catalogue;
use crate::cut::Cut;
use crate::error::OpenError;
use crate::segment::Segment;
use crate::segments::Table;
use crate::window::Window;

/// How much of each span further on is looked at for witnesses. A span that was drained begins with
/// a frame; the rest is for when that one is damaged, too.
const GLANCE_BYTES: u64 = 64 << 10;
/// How many spans from the damage on are looked at whole.
const SPANS_WHOLE: u64 = 2;

/// What a scan found.
pub(crate) struct Found {
    pub(crate) verdict: Verdict,
    /// Where the scan began.
    pub(crate) start: Lsn,
    /// The newest mark's position, or the catalogue's if none is newer.
    pub(crate) released: Lsn,
    /// Where the next drain starts.
    pub(crate) sealed: Lsn,
    /// Generation of the last frame.
    pub(crate) generation: u32,
    pub(crate) bytes_scanned: u64,
    /// Frames accepted.
    pub(crate) frames: u64,
}

/// The bytes of a log in its segments, a span at a time.
pub(crate) struct SpanReader<'a> {
    table: &'a Table,
    geometry: Geometry,
    window: Window,
    bytes_read: u64,
    reading: Lsn,
    /// Is shown as if it had been carried out.
    cut: Option<(Cut, Sealer)>,
}

impl<'a> SpanReader<'a> {
    pub(crate) fn new(table: &'a Table, geometry: Geometry) -> SpanReader<'a> {
        let (window, reading) = (Window::new(), Lsn(0));
        SpanReader { table, geometry, window, bytes_read: 0, reading, cut: None }
    }

    /// Shows the log as it is once this cut has been carried out.
    pub(crate) fn show_cut(&mut self, cut: Cut, sealer: Sealer) {
        self.cut = Some((cut, sealer));
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

    /// The bytes from `lsn` to the end of its span.
    #[inline]
    pub(crate) fn from(&mut self, lsn: Lsn) -> Result<&[u8], OpenError> {
        let end = self.geometry.span_end(lsn);
        if self.window.from(lsn).len() as u64 != end.since(lsn) {
            let (table, geometry, limit) = (self.table, self.geometry, self.limit());
            let next = |lsn: Lsn| {
                let from = lsn.align_up(geometry.span_bytes());
                let to = geometry.span_end(from);
                (to <= limit).then(|| Stretch {
                    segment: segment_at(table, geometry, from),
                    from,
                    to,
                })
            };
            self.load(lsn.align_down(self.geometry.span_bytes()), end, &next)?;
        }
        Ok(self.window.from(lsn))
    }

    /// The first bytes of the span that starts at `start`.
    fn glance(&mut self, start: Lsn) -> Result<&[u8], OpenError> {
        let bytes = GLANCE_BYTES.min(self.geometry.span_bytes());
        self.load(start, start.advance(bytes), &|_| None)?;
        Ok(&self.window.from(start)[..bytes as usize])
    }

    #[cold]
    fn load(
        &mut self,
        from: Lsn,
        to: Lsn,
        next: &dyn Fn(Lsn) -> Option<Stretch>,
    ) -> Result<(), OpenError> {
        let segment = segment_at(self.table, self.geometry, from);
        (self.bytes_read, self.reading) = (self.bytes_read + to.since(from), from);
        self.window.load(&Stretch { segment, from, to }, next).map_err(OpenError::Io)?;
        if let Some((cut, sealer)) = &self.cut {
            cut.overlay(sealer, self.geometry, from, self.window.bytes_mut());
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

/// Where the scan of an open begins that trusts the catalogue: at the span of its watermark, below
/// which everything was durable when it was written, and every mark known.
pub(crate) fn tail_start(catalogue: &Catalogue, geometry: Geometry) -> Lsn {
    catalogue.first.max(catalogue.durable.align_down(geometry.span_bytes()))
}

/// Scans from `start`, where a frame begins, to the end.
pub(crate) fn scan(
    reader: &mut SpanReader<'_>,
    sealer: &Sealer,
    start: Lsn,
) -> Result<Found, OpenError> {
    let catalogue = &reader.table.catalogue;
    let (mut released, mut frames) = (catalogue.first, 0);
    let mut scan = Scan::new(reader.geometry, start, reader.limit(), catalogue.durable);
    loop {
        match scan.step() {
            Step::Frame { at } => {
                let bytes = reader.from(at)?;
                let (accepted, mark) = see(&mut scan, sealer, bytes);
                frames += u64::from(accepted);
                released = released.max(mark.unwrap_or(released));
            }
            Step::LookAhead { from } => {
                look_ahead(reader, &mut scan, sealer, from)?;
                break;
            }
        }
    }
    Ok(Found {
        verdict: scan.finish(),
        start,
        released,
        sealed: scan.sealed(),
        generation: scan.generation(),
        bytes_scanned: reader.bytes_read,
        frames,
    })
}

/// Shows the scan what lies at the start of `bytes`. Returns whether it accepted a frame, and the
/// position in it if it is a mark.
fn see(scan: &mut Scan, sealer: &Sealer, bytes: &[u8]) -> (bool, Option<Lsn>) {
    let Some(header) = header_at(sealer, bytes) else {
        return (scan.see(Seen::Nothing), None);
    };
    let payload = if scan.fits(&header) { payload_of(&header, bytes) } else { None };
    let payload_ok = payload.is_some() && is_whole(sealer, &header, bytes);
    let accepted = scan.see(Seen::Frame { header, payload_ok });
    let mark = payload.filter(|_| accepted && header.kind == Kind::Mark).and_then(decode_mark);
    (accepted, mark)
}

/// Shows the scan every header from `from` on that could be a witness.
fn look_ahead(
    reader: &mut SpanReader<'_>,
    scan: &mut Scan,
    sealer: &Sealer,
    from: Lsn,
) -> Result<(), OpenError> {
    let (geometry, limit) = (reader.geometry, reader.limit());
    let span_bytes = geometry.span_bytes();
    let whole_end = from.align_down(span_bytes).advance(SPANS_WHOLE * span_bytes);
    let mut at = from;
    while at < limit {
        let bytes = if at < whole_end { reader.from(at)? } else { reader.glance(at)? };
        show_witnesses(scan, sealer, at, bytes);
        at = geometry.span_end(at);
    }
    Ok(())
}

fn show_witnesses(scan: &mut Scan, sealer: &Sealer, start: Lsn, bytes: &[u8]) {
    let magic = FRAME_MAGIC.to_le_bytes();
    for offset in (0..bytes.len()).step_by(FRAME_ALIGN as usize) {
        if !bytes[offset..].starts_with(&magic) {
            continue;
        }
        if let Some(header) = header_at(sealer, &bytes[offset..]) {
            scan.witness(start.advance(offset as u64), &header);
        }
    }
}

#[inline]
fn header_at(sealer: &Sealer, bytes: &[u8]) -> Option<FrameHeader> {
    decode(sealer, bytes.first_chunk()?).ok()
}

/// Whether the frame that `bytes` begin with is what was appended, to its last bit: the payload as
/// its check says, then zeros up to the next frame.
#[inline]
pub(crate) fn is_whole(sealer: &Sealer, header: &FrameHeader, bytes: &[u8]) -> bool {
    let end = header.end().since(header.lsn) as usize;
    let zeros_from = HEADER_BYTES as usize + header.payload_bytes as usize;
    payload_of(header, bytes).is_some_and(|payload| payload_matches(sealer, header, payload))
        && bytes.get(zeros_from..end).is_some_and(are_zeros)
}

#[inline]
fn payload_of<'a>(header: &FrameHeader, bytes: &'a [u8]) -> Option<&'a [u8]> {
    bytes.get(HEADER_BYTES as usize..)?.get(..header.payload_bytes as usize)
}

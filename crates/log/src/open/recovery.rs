//! Finding the end of a log in its segments.
//!
//! Feeds the scan of `holdfast-core` with what lies in the files, and with what parity gives back.
//!
//! Promise: reads only; memory for a few spans, however long the log; an I/O error ends it with
//! that error.
//! Never: decides. The scan does.

use std::collections::VecDeque;

use holdfast_core::Lsn;
use holdfast_core::frame::{
    BLOCK_BYTES, FRAME_ALIGN, FRAME_MAGIC, FrameHeader, HEADER_BYTES, Kind, Sealer, are_zeros,
    decode, decode_mark, payload_matches,
};
use holdfast_core::recovery::{Scan, Seen, Step, Verdict};
use holdfast_core::ring::Geometry;

use crate::error::OpenError;
use crate::format::catalogue::{Catalogue, GENERATION_MAX, behind_gap};
use crate::open::found::{Found, Lost, Met, OnDamage, Visit};
use crate::range::LsnRange;
use crate::read::spans::SpanReader;

/// No ring bounds a log that is read from its segments alone.
const UNBOUNDED: u64 = 1 << 63;

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
    on_damage: OnDamage,
    visit: &mut Visit<'_>,
) -> Result<Found, OpenError> {
    let catalogue = &reader.table().catalogue;
    let (released, durable) = (catalogue.first, catalogue.durable);
    let scan = Scan::new(reader.geometry(), start, reader.limit(), durable);
    let kept = Kept { upto: scan.sealed(), next: VecDeque::new() };
    let mut walk = Walk { scan, sealer, released, kept, frames: 0, lost: Vec::new() };
    let verdict = loop {
        match walk.go_on(reader, visit)? {
            Verdict::Corrupt { .. } if on_damage == OnDamage::Stop => break walk.scan.finish(),
            Verdict::Corrupt { from, .. } if reader.mend(from, walk.scan.proved())? => {
                walk.scan.again();
            }
            Verdict::Corrupt { from, to } if on_damage == OnDamage::Pass => {
                walk.pass(reader, LsnRange { from, to }, visit)?;
            }
            verdict => break verdict,
        }
    };
    Ok(Found {
        verdict,
        proved: walk.scan.proved(),
        lost: walk.lost,
        released: walk.released,
        sealed: walk.scan.sealed(),
        kept: walk.kept.upto,
        generation: walk.scan.generation(),
        bytes_scanned: reader.bytes_read(),
        frames: walk.frames,
    })
}

/// A scan under way.
struct Walk<'a> {
    scan: Scan,
    sealer: &'a Sealer,
    released: Lsn,
    kept: Kept,
    frames: u64,
    lost: Vec<Lost>,
}

/// The boundary of blocks and frames up to which all is proved.
struct Kept {
    upto: Lsn,
    /// Those behind it, in order; they are as many as drains fit into what one proves, or a span.
    next: VecDeque<Lsn>,
}

impl Kept {
    fn ends_at(&mut self, end: Lsn, proved: Lsn) {
        if end.is_aligned(BLOCK_BYTES) {
            self.next.push_back(end);
        }
        while let Some(next) = self.next.pop_front_if(|next| *next <= proved) {
            self.upto = next;
        }
    }

    /// The log goes on here, behind what is lost.
    fn goes_on(&mut self, at: Lsn) {
        self.next.clear();
        if at.is_aligned(BLOCK_BYTES) {
            self.upto = at;
        }
    }
}

impl Walk<'_> {
    /// Goes on to the next place without a whole frame.
    fn go_on(
        &mut self,
        reader: &mut SpanReader<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<Verdict, OpenError> {
        loop {
            match self.scan.step() {
                Step::Frame { at } => self.frame(reader, at, visit)?,
                Step::LookAhead { from } => {
                    look_ahead(reader, &mut self.scan, self.sealer, from)?;
                    return Ok(self.scan.finish());
                }
            }
        }
    }

    fn frame(
        &mut self,
        reader: &mut SpanReader<'_>,
        at: Lsn,
        visit: &mut Visit<'_>,
    ) -> Result<(), OpenError> {
        let Catalogue { holes, cuts, .. } = &reader.table().catalogue;
        let hole = behind_gap(holes, at);
        if let Some(to) = hole.or_else(|| behind_gap(cuts, at)) {
            self.scan.skip(to);
            self.kept.goes_on(to);
            let stretch = LsnRange { from: at, to };
            let met = if hole.is_some() { Met::Hole(stretch) } else { Met::Cut(stretch) };
            return visit(met).map_err(OpenError::Io);
        }
        reader.passed(at);
        let bytes = reader.from(at)?;
        let (accepted, mark) = see(&mut self.scan, self.sealer, bytes);
        let mark = mark.filter(|mark| mark.is_aligned(FRAME_ALIGN)); // Else it was forged.
        self.released = self.released.max(mark.unwrap_or(self.released));
        let Some(header) = accepted else { return Ok(()) };
        self.frames += 1;
        self.kept.ends_at(header.end(), self.scan.proved());
        let whole = &bytes[..header.end().since(at) as usize];
        visit(Met::Frame(&header, whole)).map_err(OpenError::Io)
    }

    fn pass(
        &mut self,
        reader: &mut SpanReader<'_>,
        stretch: LsnRange,
        visit: &mut Visit<'_>,
    ) -> Result<(), OpenError> {
        let bytes = reader.from(stretch.from)?;
        let header = header_at(self.sealer, bytes).filter(|header| self.scan.fits(header));
        let frame = header.and_then(|header| Some((header, payload_of(&header, bytes)?)));
        visit(Met::Lost(stretch, frame)).map_err(OpenError::Io)?;
        self.lost.push(Lost { stretch, released: self.released });
        self.scan.skip(stretch.to);
        self.kept.goes_on(stretch.to);
        Ok(())
    }
}

/// Shows the scan what lies at the start of `bytes`. Returns the frame that it accepted, and the
/// position in it if it is a mark.
pub(crate) fn see(
    scan: &mut Scan,
    sealer: &Sealer,
    bytes: &[u8],
) -> (Option<FrameHeader>, Option<Lsn>) {
    let Some(header) = header_at(sealer, bytes) else {
        scan.see(Seen::Nothing);
        return (None, None);
    };
    let payload = if scan.fits(&header) { payload_of(&header, bytes) } else { None };
    let payload_ok = payload.is_some() && is_whole(sealer, &header, bytes);
    let accepted = scan.see(Seen::Frame { header, payload_ok });
    let mark = payload.filter(|_| accepted && header.kind == Kind::Mark).and_then(decode_mark);
    (accepted.then_some(header), mark)
}

/// Shows the scan every header from `from` on that could be a witness, to the end of the segments:
/// whatever is left out may be the only one that is whole.
fn look_ahead(
    reader: &mut SpanReader<'_>,
    scan: &mut Scan,
    sealer: &Sealer,
    from: Lsn,
) -> Result<(), OpenError> {
    let (geometry, limit) = (reader.geometry(), reader.limit());
    let mut at = from;
    while at < limit && !scan.is_settled() {
        let end = geometry.span_end(at);
        show_witnesses(scan, sealer, at, reader.between(at, end)?);
        at = end;
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

/// The header that `bytes` begin with, if they begin with a whole one that a log can have.
#[inline]
pub(crate) fn header_at(sealer: &Sealer, bytes: &[u8]) -> Option<FrameHeader> {
    let header = decode(sealer, bytes.first_chunk()?).ok()?;
    (header.generation <= GENERATION_MAX).then_some(header)
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

/// The sizes of a log that is read from its segments alone.
pub(crate) fn segments_alone(catalogue: &Catalogue) -> Geometry {
    let geometry = Geometry::new(UNBOUNDED, catalogue.segment_bytes);
    geometry.expect("a catalogue is refused unless its segments have a size that logs have")
}

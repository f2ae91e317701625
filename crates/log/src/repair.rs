//! A new log from what can be read of a damaged one.
//!
//! Promise: the old log is only read; the new one holds every frame that is whole, or that parity
//! gives back, at its own position, and pads where something is lost; it is there when its
//! catalogue is, and then it is on the device as a whole.
//! Never: keeps half a frame; brings back what was cut off; makes an empty log of segments that
//! have frames.

pub(crate) mod remake;
pub(crate) mod salvage;
pub(crate) mod verify;

use std::io;
use std::path::Path;

use holdfast_core::Lsn;
use holdfast_core::frame::{FrameHeader, Kind, Sealer, encode, pad_payload_bytes, payload_check};
use holdfast_core::recovery::Verdict as End;
use holdfast_core::ring::Geometry;
use holdfast_io::Files;
use holdfast_io::checksum::crc32c;

use crate::config::Parity;
use crate::error::{CreateError, FileFault, OpenError, RepairError};
use crate::format::buffer::Buffer;
use crate::format::catalogue::copies::{self, Copies};
use crate::format::catalogue::{Catalogue, Entry};
use crate::format::stripe::Spec;
use crate::open::create::{check_place, keep_room};
use crate::open::found::{Found, Met, OnDamage};
use crate::open::recovery::{scan, segments_alone};
use crate::range::LsnRange;
use crate::read::spans::SpanReader;
use crate::repair::salvage::salvage;
use crate::repair::verify::{Steps, Walked, located};
use crate::segments::Table;
use crate::segments::pace::Pace;
use crate::segments::parity::Stripes;
use crate::segments::segment::{Segment, SegmentHeader, header_of, segment_name, used_segment};

/// What a repair kept and lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// Frames that were kept, marks and padding included.
    pub frames: u64,
    /// Where the log begins.
    pub first: Lsn,
    /// Where it ends.
    pub end: Lsn,
    /// What parity gave back, in blocks.
    pub mended: Vec<LsnRange>,
    /// What is lost, now or by an earlier cut, in order.
    pub lost: Vec<LsnRange>,
    /// Whether files were missing, short or older than others, so that what is said of them was
    /// found out from the segments. What lay behind the last frame that is left is not known then.
    pub rebuilt: bool,
}

/// What a repair tells while it is under way.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RepairEvent<'a> {
    /// It has come so far.
    Walked(Walked),
    /// A frame is lost as a whole, though its header is as it was written. Of its payload this is
    /// left; whoever knows what it means may find parts of it whole.
    BrokenFrame {
        /// The header.
        header: &'a FrameHeader,
        /// The payload as the device gives it.
        payload: &'a [u8],
    },
}

/// See [`crate::Log::repair`].
pub(crate) fn repair(
    from: &dyn Files,
    to: Option<&dyn Files>,
    watch: &mut dyn FnMut(RepairEvent<'_>),
) -> Result<Repaired, RepairError> {
    let (table, rebuilt) = salvage(from).map_err(RepairError::Source)?;
    if rebuilt && to.is_some() {
        // Nothing is made of a log that nothing can be saved of.
        repair(from, None, &mut |_| {})?;
    }
    let geometry = segments_alone(&table.catalogue);
    let copy = to.map(|files| Copy::new(files, &table, geometry)).transpose()?;
    let mut reader = SpanReader::streaming(&table, geometry);
    let sealer = Sealer::new(&table.catalogue.identity, crc32c);
    let steps = Steps::new(&reader, 1);
    let mut repair = Repair { copy, steps, watch, lost: Vec::new(), failed: None };
    let first = table.catalogue.first;
    let found = scan(&mut reader, &sealer, first, OnDamage::Pass, &mut |met| repair.met(&met));
    let Repair { copy, steps, watch, lost, failed } = repair;
    if let Some(error) = failed {
        return Err(RepairError::Target(CreateError::Io(error)));
    }
    let found = located(&table, &mut reader, found).map_err(RepairError::Source)?;
    if rebuilt && found.frames == 0 {
        refuse_used(from, &table)?;
    }
    // Pads take the place of what is lost: no frame begins inside.
    let hit = lost.iter().find(|lost| lost.from < found.released && found.released < lost.to);
    let first = hit.map_or(found.released, |lost| lost.to);
    if let Some(copy) = copy {
        copy.finish(&found, first).map_err(|e| RepairError::Target(CreateError::Io(e)))?;
    }
    watch(RepairEvent::Walked(steps.all()));
    let (End::Clean { end } | End::Torn { end } | End::Corrupt { from: end, .. }) = found.verdict;
    let mended = reader.mended().to_vec();
    Ok(Repaired { frames: found.frames, first, end, mended, lost, rebuilt })
}

/// Segments with frames of which none is to be had are not this log's, or nothing is left of them.
fn refuse_used(files: &dyn Files, table: &Table) -> Result<(), RepairError> {
    let source = |error| RepairError::Source(OpenError::Io(error));
    let Some(name) = used_segment(files).map_err(source)? else { return Ok(()) };
    if let Some(name) = missing_segment(files, table).map_err(source)? {
        return Err(RepairError::Source(OpenError::MissingSegment { name }));
    }
    let fault = match header_of(files, &name).map_err(source)? {
        Ok((header, _)) if header.identity != table.catalogue.identity => FileFault::Foreign,
        Ok(_) => FileFault::Contents,
        Err(fault) => fault,
    };
    Err(RepairError::Source(OpenError::File { name, fault }))
}

/// The first file that the log's own catalogue lists and that is not there: what the log had is in
/// such files, and not in one that it is done with.
fn missing_segment(files: &dyn Files, table: &Table) -> io::Result<Option<String>> {
    let listed = copies::load(files).ok().map(|(catalogue, _)| catalogue);
    let own = listed.filter(|listed| listed.identity == table.catalogue.identity);
    for entry in own.iter().flat_map(|own| &own.entries) {
        let name = segment_name(entry.file);
        match files.metadata(Path::new(&name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(name)),
            found => found.map(drop)?,
        }
    }
    Ok(None)
}

/// A repair under way.
struct Repair<'a> {
    copy: Option<Copy<'a>>,
    steps: Steps,
    watch: &'a mut dyn FnMut(RepairEvent<'_>),
    lost: Vec<LsnRange>,
    /// The error of the new log, told from those of the old one.
    failed: Option<io::Error>,
}

impl Repair<'_> {
    fn met(&mut self, met: &Met<'_>) -> io::Result<()> {
        if let Some(walked) = self.steps.at(met) {
            (self.watch)(RepairEvent::Walked(walked));
        }
        if let Met::Lost(stretch, _) | Met::Hole(stretch) = met {
            self.lost.push(*stretch);
        }
        if let Met::Lost(_, Some((header, payload))) = met {
            (self.watch)(RepairEvent::BrokenFrame { header, payload });
        }
        let copied = self.copy.as_mut().map_or(Ok(()), |copy| copy.take(met));
        copied.map_err(|error| {
            let kind = error.kind();
            self.failed = Some(error);
            kind.into()
        })
    }
}

/// The new log, a span at a time.
struct Copy<'a> {
    files: &'a dyn Files,
    /// The new catalogue, as far as it goes.
    catalogue: Catalogue,
    label: Vec<u8>,
    geometry: Geometry,
    sealer: Sealer,
    /// The span that is being filled, and where it starts.
    span: Buffer,
    start: Lsn,
    /// The file that the span goes to: that of the last entry.
    segment: Segment,
    stripes: Option<Stripes>,
    generation: u32,
}

impl<'a> Copy<'a> {
    fn new(
        files: &'a dyn Files,
        table: &Table,
        geometry: Geometry,
    ) -> Result<Copy<'a>, RepairError> {
        check_place(files).map_err(RepairError::Target)?;
        let (old, label) = (&table.catalogue, table.label.clone());
        let mut catalogue = Catalogue { entries: Vec::new(), holes: Vec::new(), ..old.clone() };
        let start = old.first.align_down(geometry.span_bytes());
        let made = make_segment(files, &mut catalogue, &label, geometry.segment_of(start));
        let segment = made.map_err(|error| RepairError::Target(CreateError::Io(error)))?;
        let Catalogue { identity, generations_below: generation, segment_bytes, .. } = *old;
        let spec = Spec { identity, generation, segment_bytes };
        Ok(Copy {
            files,
            geometry,
            sealer: Sealer::new(&old.identity, crc32c),
            span: Buffer::zeroed(geometry.span_bytes() as usize),
            start,
            segment,
            stripes: (old.parity != Parity::None).then(|| Stripes::begin(spec, start)),
            generation: 0,
            catalogue,
            label,
        })
    }

    /// A frame goes where it was. What is lost becomes pads.
    fn take(&mut self, met: &Met<'_>) -> io::Result<()> {
        match met {
            Met::Frame(header, bytes) => {
                self.generation = header.generation;
                self.put(header.lsn, bytes)
            }
            Met::Lost(LsnRange { from, to }, _)
            | Met::Hole(LsnRange { from, to })
            | Met::Cut(LsnRange { from, to }) => self.pad(*from, *to),
        }
    }

    fn pad(&mut self, from: Lsn, to: Lsn) -> io::Result<()> {
        let mut at = from;
        while at < to {
            let until = self.geometry.span_end(at).min(to);
            let zeros = vec![0; pad_payload_bytes(at, until) as usize];
            let header = FrameHeader {
                lsn: at,
                durable: at.align_down(self.geometry.span_bytes()),
                payload_bytes: zeros.len() as u32,
                payload_check: payload_check(&self.sealer, &zeros),
                generation: self.generation,
                kind: Kind::Pad,
                flags: 0,
                records: 0,
                utc_ns: 0,
            };
            self.put(at, &encode(&self.sealer, &header))?;
            at = until;
        }
        Ok(())
    }

    /// Puts bytes of one span in their place. What lies behind them is zeros.
    fn put(&mut self, lsn: Lsn, bytes: &[u8]) -> io::Result<()> {
        let start = lsn.align_down(self.geometry.span_bytes());
        while self.start < start {
            self.flush(self.geometry.span_bytes())?;
        }
        self.span.bytes_mut()[lsn.since(start) as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// Writes the span, of which so many bytes are durable, and begins the next one.
    fn flush(&mut self, durable_bytes: u64) -> io::Result<()> {
        let number = self.geometry.segment_of(self.start);
        if self.catalogue.entries.last().is_none_or(|last| last.number < number) {
            self.segment.sync()?;
            let (files, catalogue) = (self.files, &mut self.catalogue);
            self.segment = make_segment(files, catalogue, &self.label, number)?;
        }
        self.segment.write_all(self.start, self.span.bytes())?;
        let durable = &self.span.bytes()[..durable_bytes as usize];
        let stripes = self.stripes.as_mut();
        let complete = stripes.and_then(|stripes| stripes.absorb(self.start, durable));
        if let Some(parity) = complete.map(|complete| complete.encode(durable)) {
            self.segment.write_groups(parity.stripe, parity.groups.bytes())?;
        }
        self.span.bytes_mut().fill(0);
        self.start = self.geometry.span_end(self.start);
        Ok(())
    }

    /// Writes the rest, and last of all the catalogue.
    fn finish(mut self, found: &Found, first: Lsn) -> io::Result<()> {
        if found.sealed > self.start {
            self.flush(found.sealed.since(self.start))?;
        } else {
            self.flush(0)?;
        }
        let partial = self.stripes.as_mut().and_then(Stripes::seal_partial);
        if let Some(parity) = partial {
            self.segment.write_groups(parity.stripe, parity.groups.bytes())?;
        }
        self.segment.sync()?;
        keep_room(self.files, self.catalogue.parity)?;
        self.files.sync_dir(Path::new(""))?;
        self.catalogue.durable = found.sealed;
        if self.catalogue.covers(first) && first <= found.sealed {
            self.catalogue.first = first;
        }
        let below = self.catalogue.generations_below;
        self.catalogue.generations_below = below.max(found.generation + 1);
        Copies::new().replace(self.files, &self.catalogue)
    }
}

/// Makes the next file, for the segment of this number.
fn make_segment(
    files: &dyn Files,
    catalogue: &mut Catalogue,
    label: &[u8],
    number: u64,
) -> io::Result<Segment> {
    let entry = Entry { file: catalogue.entries.len() as u32, number };
    let segment = Segment::make(files, entry.file, catalogue.shape(), Pace::Full)?;
    let header = SegmentHeader {
        identity: catalogue.identity,
        generation: catalogue.generations_below,
        number,
        segment_bytes: catalogue.segment_bytes,
    };
    segment.write_header(&header, label)?;
    catalogue.entries.push(entry);
    Ok(segment)
}

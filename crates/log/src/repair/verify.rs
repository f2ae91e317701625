//! Looking at a whole log without taking it into use.
//!
//! Promise: every frame that is still needed is read, header and payload, by the code that would
//! recover it, also behind damage, and every stripe beside its parity; damage is named by position,
//! file and offset. Memory does not depend on how long the log is. Nothing is changed, and the
//! device may be read-only.
//! Never: repairs; calls the remains of an unacknowledged write damage.

use std::io;

use holdfast_core::Lsn;
use holdfast_core::frame::{BLOCK_BYTES, Sealer};
use holdfast_core::recovery::Verdict as End;
use holdfast_core::ring::Geometry;
use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, unnamed};

use crate::error::OpenError;
use crate::format::catalogue::{Catalogue, behind_gap};
use crate::open::found::{Found, Met, OnDamage};
use crate::open::load::load_table;
use crate::open::recovery::{scan, segments_alone};
use crate::outcome::Spoilt;
use crate::range::LsnRange;
use crate::read::spans::SpanReader;
use crate::segments::Table;
use crate::segments::reconstruct::{Judged, Mender};
use crate::segments::segment::{Access, segment_name};

/// How far a walk over a log has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walked {
    /// Bytes behind it.
    pub done_bytes: u64,
    /// Bytes there are at most.
    pub all_bytes: u64,
}

/// What the segments of a log hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Identity of the log.
    pub identity: [u8; 16],
    /// Whole frames, also behind damage; marks and padding are frames, too.
    pub frames: u64,
    /// Bytes read from the segment files for that.
    pub bytes_scanned: u64,
    /// Where the first frame starts that is still needed.
    pub first: Lsn,
    /// What is below this is applied, as the newest mark says: the reader begins here.
    pub released: Lsn,
    /// Where the log ends.
    pub end: Lsn,
    /// Up to here an open takes it for durable.
    pub durable: Lsn,
    /// Whether all of it is there.
    pub verdict: CheckVerdict,
    /// The file that holds the first damage or else `end`, unless the last segment is full.
    pub place: Option<FilePlace>,
    /// What is damaged of what was acknowledged, in order.
    pub damaged: Vec<Damage>,
    /// What has been cut out of the log by earlier opens, and is missing since.
    pub holes: Vec<LsnRange>,
    /// How the stripes are, if the log has parity.
    pub parity: Option<VerifiedParity>,
    /// Which of the two catalogues is not as it should be. The next open makes it again.
    pub spoilt: Vec<Spoilt>,
}

/// Acknowledged bytes that the device damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// What is lost: frames; or blocks, where parity gives them back.
    pub stretch: LsnRange,
    /// Where it begins.
    pub place: FilePlace,
    /// Whether parity gives all of it back.
    pub mendable: bool,
}

/// How the stripes of a log are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedParity {
    /// Stripes that hold anything.
    pub stripes: u64,
    /// Those that are what their parity was made of, which is whole, too.
    pub sound: u64,
    /// Those of which a block is damaged, or of their parity.
    pub damaged: u64,
    /// Those without parity: the last one of a log that was not closed, or one whose parity is
    /// lost.
    pub unprotected: u64,
}

/// Whether a log is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckVerdict {
    /// All is there, and nothing lies behind the last frame.
    Clean,
    /// Remains of a write that was never acknowledged lie there. Legal after a power cut; the next
    /// open cuts them off.
    Torn {
        /// Where they start.
        at: Lsn,
    },
    /// Acknowledged bytes are damaged, here first. The log does not open from its segments, unless
    /// its policy says what to do about that.
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

/// See [`crate::Log::verify`].
pub(crate) fn verify(
    files: &dyn Files,
    progress: &mut dyn FnMut(Walked),
) -> Result<Verified, OpenError> {
    let table = load_table(files, Access::Read)?;
    let geometry = segments_alone(&table.catalogue);
    let mut reader = SpanReader::streaming(&table, geometry);
    let sealer = Sealer::new(&table.catalogue.identity, crc32c);
    let mender = Mender::of(&table, geometry);
    let mut steps = Steps::new(&reader, if mender.is_some() { 2 } else { 1 });
    let first = table.catalogue.first;
    let found = scan(&mut reader, &sealer, first, OnDamage::Pass, &mut |met| {
        steps.at(&met).into_iter().for_each(&mut *progress);
        Ok(())
    });
    let found = located(&table, &mut reader, found)?;
    let parity = mender.map(|mender| {
        let walked = |at| steps.stripe(at).into_iter().for_each(&mut *progress);
        judge(&table, &mender, &found, walked)
    });
    progress(steps.all());
    Ok(summary(&table, &reader, found, parity))
}

/// What a scan found, unless the device failed where that may hide something.
pub(crate) fn located(
    table: &Table,
    reader: &mut SpanReader<'_>,
    found: Result<Found, OpenError>,
) -> Result<Found, OpenError> {
    let found = match found {
        Err(OpenError::Io(error)) => {
            return Err(OpenError::Io(named(table, reader.reading(), &error)));
        }
        found => found?,
    };
    let lost: Vec<LsnRange> = found.lost.iter().map(|lost| lost.stretch).collect();
    match reader.unread_outside(&lost) {
        Some((at, error)) => Err(OpenError::Io(named(table, at, &error))),
        None => Ok(found),
    }
}

fn summary(
    table: &Table,
    reader: &SpanReader<'_>,
    found: Found,
    parity: Option<VerifiedParity>,
) -> Verified {
    let damaged = damages(table, reader, &found);
    let (end, verdict) = match found.verdict {
        End::Clean { end } => (end, CheckVerdict::Clean),
        End::Torn { end } => (end, CheckVerdict::Torn { at: end }),
        End::Corrupt { from, to } => (from, CheckVerdict::Corrupt { from, to }),
    };
    let first_damage = damaged.first().map(|damage| damage.stretch);
    let corrupt = |stretch: LsnRange| CheckVerdict::Corrupt { from: stretch.from, to: stretch.to };
    Verified {
        identity: table.catalogue.identity,
        frames: found.frames,
        bytes_scanned: found.bytes_scanned,
        first: table.catalogue.first,
        released: found.released,
        end,
        durable: found.sealed,
        verdict: first_damage.map_or(verdict, corrupt),
        place: place_of(table, first_damage.map_or(end, |stretch| stretch.from)),
        damaged,
        holes: table.catalogue.holes.clone(),
        parity,
        spoilt: table.copies.spoilt(),
    }
}

/// What is lost and what parity gives back, in order of position.
fn damages(table: &Table, reader: &SpanReader<'_>, found: &Found) -> Vec<Damage> {
    let damage = |stretch: LsnRange, mendable| {
        let place = place_of(table, stretch.from).expect("only listed segments are read");
        Damage { stretch, place, mendable }
    };
    let lost = found.lost.iter().map(|lost| damage(lost.stretch, false));
    let mended = reader.mended().iter().map(|stretch| damage(*stretch, true));
    let mut damages: Vec<Damage> = lost.chain(mended).collect();
    damages.sort_by_key(|damage| damage.stretch.from);
    damages
}

/// Compares each stripe that is still needed with its parity.
fn judge(
    table: &Table,
    mender: &Mender,
    found: &Found,
    mut walked: impl FnMut(Lsn),
) -> VerifiedParity {
    let Catalogue { first, segment_bytes, .. } = table.catalogue;
    let (mut parity, gaps) = (VerifiedParity::default(), table.catalogue.gaps());
    let mut stripe = first.align_down(mender.stripe_bytes());
    while stripe < found.sealed {
        let next = stripe.advance(mender.stripe_bytes());
        let number = stripe.get() / segment_bytes;
        let slot = table.slots.iter().find(|slot| slot.entry.number == number);
        let needed = next.min(found.sealed);
        let is_needed = behind_gap(&gaps, stripe).is_none_or(|to| to < needed);
        if let Some(slot) = slot.filter(|_| is_needed) {
            parity.count(mender.judge(&slot.segment, stripe));
        }
        walked(next);
        stripe = next;
    }
    parity
}

impl VerifiedParity {
    fn count(&mut self, judged: Judged) {
        self.stripes += 1;
        match judged {
            Judged::Sound => self.sound += 1,
            Judged::Damaged => self.damaged += 1,
            Judged::Unprotected => self.unprotected += 1,
        }
    }
}

/// Knows when there is progress to tell of: once a span.
pub(crate) struct Steps {
    geometry: Geometry,
    first: Lsn,
    /// Bytes of one pass.
    pass_bytes: u64,
    passes: u64,
    told: Lsn,
}

impl Steps {
    pub(crate) fn new(reader: &SpanReader<'_>, passes: u64) -> Steps {
        let first = reader.table().catalogue.first;
        let pass_bytes = reader.limit().since(first);
        Steps { geometry: reader.geometry(), first, pass_bytes, passes, told: first }
    }

    /// A scan has come here.
    pub(crate) fn at(&mut self, met: &Met<'_>) -> Option<Walked> {
        let at = match met {
            Met::Frame(header, _) => header.lsn,
            Met::Lost(stretch, _) | Met::Hole(stretch) | Met::Cut(stretch) => stretch.to,
        };
        if at < self.geometry.span_end(self.told) {
            return None;
        }
        self.told = at;
        Some(self.walked(at.since(self.first)))
    }

    /// Everything has been walked over.
    pub(crate) fn all(&self) -> Walked {
        self.walked(self.pass_bytes * self.passes)
    }

    /// The second pass has come here.
    fn stripe(&self, at: Lsn) -> Option<Walked> {
        let done_bytes = self.pass_bytes + at.get().saturating_sub(self.first.get());
        at.is_aligned(self.geometry.span_bytes()).then(|| self.walked(done_bytes))
    }

    fn walked(&self, done_bytes: u64) -> Walked {
        Walked { done_bytes, all_bytes: self.pass_bytes * self.passes }
    }
}

fn place_of(table: &Table, lsn: Lsn) -> Option<FilePlace> {
    let segment_bytes = table.catalogue.segment_bytes;
    let number = lsn.get() / segment_bytes;
    let entry = table.catalogue.entries.iter().find(|entry| entry.number == number)?;
    let offset = BLOCK_BYTES + lsn.offset_in(segment_bytes);
    Some(FilePlace { file: segment_name(entry.file), offset })
}

/// An error of reading, with the very place at which it struck: reads are longer.
fn named(table: &Table, at: Lsn, error: &io::Error) -> io::Error {
    let place = place_of(table, at).expect("only listed segments are read");
    let FilePlace { file, offset } = place;
    let error = unnamed(error);
    io::Error::new(error.kind(), format!("reading {file} from byte {offset}: {error}"))
}

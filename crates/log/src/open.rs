//! Opening a log: from the ring that survived, or from the segments.
//!
//! The region's word [`words::GENERATION`] says whether its ring is this log: it is 0 while a ring
//! is being filled, and set last. The catalogue bounds the generations that may have been used, in
//! steps, so that most opens write nothing; every open from segments starts a new step, so a region
//! left over from before such an open is recognised as stale.
//!
//! Promise: everything is looked at before anything is changed but a ring that says it is not the
//! log; what is changed first is made
//! durable first: the cut of a torn tail, then the catalogue, then the ring.
//! Never: takes an I/O error for the end of the log; opens over damaged acknowledged data.

pub(crate) mod again;
pub(crate) mod check;
pub(crate) mod create;
pub(crate) mod foresee;
pub(crate) mod found;
pub(crate) mod give;
pub(crate) mod lacking;
pub(crate) mod left;
pub(crate) mod load;
pub(crate) mod mend;
pub(crate) mod older;
pub(crate) mod opening;
pub(crate) mod policy;
pub(crate) mod recovery;
pub(crate) mod refill;
pub(crate) mod truncate;
pub(crate) mod unapplied;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_core::Lsn;
use holdfast_core::drain::Drain;
use holdfast_core::frame::{
    BLOCK_BYTES, HEADER_BYTES, Kind, Sealer, decode, decode_mark, payload_matches,
};
use holdfast_core::handover::{Walk, check_marks};
use holdfast_core::recovery::Verdict as End;
use holdfast_core::ring::Geometry;
use holdfast_io::checksum;
use holdfast_io::{Clock, Files};
use holdfast_memory::{Pin, Region};

use crate::append::progress::{Moved, Progress};
use crate::config::{LogConfig, Parity, Retention, Scanned};
use crate::error::{AppendError, CommitError, FileFault, OpenError};
use crate::format::catalogue::{CATALOGUE, Catalogue};
use crate::format::pads::PadChecks;
use crate::format::stripe::Spec;
use crate::open::again::Again;
use crate::open::foresee::has_all;
use crate::open::found::{Found, Recovered};
use crate::open::give::refuse_lost;
use crate::open::load::{
    GENERATION_STEP, is_of_step, load_what_is_left, refuse_absent, refuse_needed,
};
use crate::open::older::refuse_older;
use crate::open::opening::Opening;
use crate::open::recovery::tail_start;
use crate::open::refill::Refill;
use crate::outcome::{Mended, Recovery, Source, Spoilt, Verdict};
use crate::range::LsnRange;
use crate::read::cuts::Cuts;
use crate::read::damaged::DamagedFrames;
use crate::read::spans::SpanReader;
use crate::rest::Rest;
use crate::segments::cut::Cut;
use crate::segments::parity::Stripes;
use crate::segments::reconstruct::Mender;
use crate::segments::segment::Access;
use crate::segments::{Segments, Table};
use crate::state::Log;
use crate::words;

/// What a walk over frames of a ring met.
pub(crate) struct Walked {
    /// The first frame that is not whole.
    pub(crate) damaged: Option<Lsn>,
    /// What the newest mark says, or zero.
    pub(crate) marked: Lsn,
}

/// See [`Log::open`].
pub(crate) fn open(
    files: Arc<dyn Files>,
    region: Arc<Region>,
    clock: Arc<dyn Clock>,
    config: &LogConfig,
) -> Result<(Log, Recovery), OpenError> {
    let (opening, table) = look(files, region, clock, config)?;
    // EDGE ring-filled: having seen the generation, the ring below the tail is this log.
    let generation = opening.region.word(words::GENERATION).load(Ordering::Acquire);
    if generation == 0 {
        return opening.open_segments(table);
    }
    opening.open_ring(table, generation as u32)
}

/// See [`Log::mend`].
pub(crate) fn mend(
    files: Arc<dyn Files>,
    region: Arc<Region>,
    clock: Arc<dyn Clock>,
    config: &LogConfig,
) -> Result<Mended, OpenError> {
    let (opening, table) = look(files, region, clock, config)?;
    opening.mend(table)
}

/// The log's files, once they and the region are known to belong together. Changes nothing, unless
/// a cut is to be finished.
fn look(
    files: Arc<dyn Files>,
    region: Arc<Region>,
    clock: Arc<dyn Clock>,
    config: &LogConfig,
) -> Result<(Opening<'_>, Table), OpenError> {
    config.check_policy().map_err(OpenError::Config)?;
    let mut table = load_what_is_left(&*files, Access::Write)?;
    let in_the_way = |spoilt: &Spoilt| spoilt.fault == FileFault::NotAFile;
    if let Some(Spoilt { name, fault }) = table.copies.spoilt().into_iter().find(in_the_way) {
        return Err(OpenError::File { name, fault });
    }
    if table.cut.is_some() || table.again.is_some() {
        refuse_absent(&mut table)?;
    }
    let identity = table.catalogue.identity;
    if region.identity() != identity {
        return Err(OpenError::ForeignRegion { region: region.identity(), log: identity });
    }
    if region.word(words::OPENER).load(Ordering::Relaxed) == region.generation() {
        return Err(OpenError::InUse);
    }
    let geometry = fit(&region, table.catalogue.segment_bytes)?;
    let sealer = Sealer::new(&identity, checksum::chosen());
    finish_cut(&*files, &mut table, &sealer, geometry)?;
    finish_again(&*files, &mut table, geometry)?;
    Ok((Opening { files, region, clock, config, sealer, geometry }, table))
}

/// Carries out a cut that its process did not live to finish.
fn finish_cut(
    files: &dyn Files,
    table: &mut Table,
    sealer: &Sealer,
    geometry: Geometry,
) -> Result<(), OpenError> {
    let Some(cut) = table.cut.take() else { return Ok(()) };
    let slot = |number| table.slots.iter().find(|slot| slot.entry.number == number);
    cut.carry_out(sealer, geometry, |number| slot(number).map(|slot| slot.segment.clone()))
        .map_err(OpenError::Io)?;
    let told = table.copies.replace(files, &table.catalogue);
    told.and_then(|()| Cut::clear(files)).map_err(OpenError::Io)
}

/// Writes once more what its process did not live to write once more.
fn finish_again(files: &dyn Files, table: &mut Table, geometry: Geometry) -> Result<(), OpenError> {
    let Some(again) = table.again.take() else { return Ok(()) };
    let number = geometry.segment_of(again.at);
    let slot = table.slots.iter().find(|slot| slot.entry.number == number);
    let slot = slot.expect("it lies in a segment that is listed");
    let written = slot.segment.write_all(again.at, again.bytes.bytes());
    let done = written.and_then(|()| slot.segment.sync()).and_then(|()| Again::clear(files));
    done.map_err(OpenError::Io)
}

/// The geometry of a ring and a segment size, if the ring is large enough.
fn fit(region: &Region, segment_bytes: u64) -> Result<Geometry, OpenError> {
    let ring_bytes = region.ring_bytes();
    let too_small = OpenError::RingTooSmall { ring_bytes, needed_bytes: 2 * segment_bytes };
    Geometry::new(ring_bytes, segment_bytes).ok_or(too_small)
}

impl Opening<'_> {
    /// The region is new: what the device has is the log.
    fn open_segments(self, mut table: Table) -> Result<(Log, Recovery), OpenError> {
        refuse_needed(&mut table)?;
        let mut ring = Refill::new(&self.region, self.config.retention);
        let remade = table.copies.spoilt();
        let Recovered { found, mended, lost } = self.recover(&table, &mut ring)?;
        let (end, verdict) = match found.verdict {
            End::Clean { end } => (end, Verdict::Clean),
            End::Torn { end } => (end, Verdict::Torn { at: end }),
            End::Corrupt { from, to } => return Err(OpenError::Corrupt { from, to }),
        };
        // Marks only tell of durable frames, and what was durable ended with a seal: what they tell
        // of is there, unless they were forged.
        if found.released > found.sealed {
            return Err(OpenError::Corrupt { from: found.sealed, to: found.released });
        }
        assert!(found.kept <= found.sealed && found.sealed <= end);
        let ring_start = match self.config.retention {
            Retention::InRing => found.released,
            Retention::OnDevice => found.sealed,
        };
        self.check_fits(ring_start, end)?;
        self.clear_torn_end(&table, &found, end)?;
        self.write_again(&table, found.kept, found.sealed)?;
        let generation = self.begin_step(&mut table, &found, lost)?;
        self.clear_half_made(&mut table);
        self.refill(ring, &table, &found, (ring_start, end))?;
        let recovery = Recovery {
            source: Source::Segments,
            released: found.released,
            durable: found.sealed,
            tail: end,
            verdict,
            bytes_scanned: found.bytes_scanned,
            generation,
            mended,
            lost,
            again: Vec::new(),
            lacks: None,
            remade,
            shortened: Vec::new(),
        };
        let log = self.assemble(table, generation)?;
        begin_generation(&log)?;
        Ok((log, recovery))
    }

    /// The region survived: what is in the ring is the log, and all of it is looked at before any
    /// of it is believed. Frames that only the ring has come first: if they are damaged, nothing
    /// can be done here, and nothing is.
    fn open_ring(self, mut table: Table, last: u32) -> Result<(Log, Recovery), OpenError> {
        let below = table.catalogue.generations_below;
        is_of_step(below, last.into())?;
        let marks = self.region.marks();
        let (durable, tail) = (Lsn(marks.durable), Lsn(marks.tail));
        check_marks(&self.geometry, Lsn(marks.released), durable, tail)
            .map_err(OpenError::Marks)?;
        refuse_older(&table, (&self.sealer, self.geometry), durable, tail)?;
        let word = Lsn(self.region.word(words::MARKED).load(Ordering::Relaxed));
        let marked = table.catalogue.first.max(word).max(Lsn(marks.released)).min(durable);
        let new = self.walk(durable, tail);
        if let Some(from) = new.damaged {
            return Err(OpenError::Corrupt { from, to: tail });
        }
        let old = self.walk(marked, durable);
        if let Some(at) = old.damaged {
            return self.heal(table, last, at);
        }
        // The reader may have died between its mark and all that follows; the mark counts.
        let released = marked.max(old.marked).max(new.marked);
        refuse_lost(&mut table, self.config.retention, released)?;
        // Marks only tell of durable frames, unless they, or the memory's own, were forged.
        if released > durable {
            return Err(OpenError::Corrupt { from: durable, to: released });
        }
        self.region.release(released.get());
        let generation = last.checked_add(1).expect("a log is opened less than 2^32 times");
        let remade = self.make_copies_again(&mut table);
        self.clear_half_made(&mut table);
        let given = self.give_again(&mut table, released, durable)?;
        let log = self.assemble(table, generation)?;
        log.take_generation(below)?;
        begin_generation(&log)?;
        let recovery = Recovery {
            source: Source::Ring,
            released: log.first(),
            durable,
            tail,
            verdict: Verdict::Clean,
            bytes_scanned: tail.since(released),
            generation,
            mended: Vec::new(),
            lost: None,
            again: given.again,
            lacks: given.lacks,
            remade,
            shortened: given.shortened,
        };
        Ok((log, recovery))
    }

    /// The ring is damaged where the device has the bytes: drains the rest, which is whole, and
    /// fills the ring anew. A death on the way leaves either the damaged ring, to be healed again,
    /// or one that says it is not the log.
    fn heal(self, mut table: Table, last: u32, at: Lsn) -> Result<(Log, Recovery), OpenError> {
        refuse_absent(&mut table)?;
        has_all(&*self.files, Lsn(self.region.marks().durable), self.config.policy)?;
        let (files, region) = (Arc::clone(&self.files), Arc::clone(&self.region));
        let (clock, config) = (Arc::clone(&self.clock), self.config);
        let log = self.assemble(table, last)?;
        log.commit_to(log.marks().tail).map_err(|error| match error {
            CommitError::Poisoned(error)
            | CommitError::Unprepared(error)
            | CommitError::Unreachable(error) => OpenError::Io(io::Error::new(error.kind(), error)),
        })?;
        has_all(&*files, log.marks().tail, config.policy)?;
        drop(log);
        region.word(words::GENERATION).store(0, Ordering::Relaxed);
        let (log, mut recovery) = open(files, region, clock, config)?;
        recovery.verdict = Verdict::Healed { at };
        Ok((log, recovery))
    }

    /// Looks at every frame between two boundaries of the ring.
    pub(crate) fn walk(&self, from: Lsn, to: Lsn) -> Walked {
        let pin = self.region.pin(from.get());
        let mut walk = Walk::new(self.geometry, from, to);
        let mut walked = Walked { damaged: None, marked: Lsn::ZERO };
        while let Some(at) = walk.at() {
            let Some(payload) = self.step_over(&pin, &mut walk, at) else {
                walked.damaged = Some(at);
                return walked;
            };
            let mark = payload.and_then(decode_mark).unwrap_or(Lsn::ZERO);
            walked.marked = walked.marked.max(mark);
        }
        walked
    }

    /// None if the frame is damaged; the payload, if it is a mark's.
    fn step_over<'a>(
        &self,
        pin: &'a Pin<'_>,
        walk: &mut Walk,
        at: Lsn,
    ) -> Option<Option<&'a [u8]>> {
        let head = pin.bytes(at.get(), HEADER_BYTES as usize);
        let head = head.first_chunk().expect("a header was asked for");
        let header = decode(&self.sealer, head).ok().filter(|header| walk.fits(header))?;
        let payload = pin.bytes(header.payload_lsn().get(), header.payload_bytes as usize);
        if !payload_matches(&self.sealer, &header, payload) {
            return None;
        }
        walk.step(&header);
        Some((header.kind == Kind::Mark).then_some(payload))
    }

    /// What goes back into the ring is looked at in any case.
    pub(crate) fn scan_start(&self, catalogue: &Catalogue) -> Lsn {
        match (self.config.retention, self.config.scan) {
            (Retention::OnDevice, Scanned::Tail) => tail_start(catalogue, self.geometry),
            (Retention::OnDevice, Scanned::Whole) | (Retention::InRing, _) => catalogue.first,
        }
    }

    /// What has to go back into the ring came out of one as large, unless it was replaced.
    fn check_fits(&self, released: Lsn, end: Lsn) -> Result<(), OpenError> {
        let (ring_bytes, needed_bytes) = (self.geometry.ring_bytes(), end.since(released));
        if needed_bytes > ring_bytes {
            return Err(OpenError::RingTooSmall { ring_bytes, needed_bytes });
        }
        Ok(())
    }

    /// Makes the catalogue again that was not as it should be, and says which that was. While there
    /// is no room for it, the other does; the next one to be written is this one.
    fn make_copies_again(&self, table: &mut Table) -> Vec<Spoilt> {
        let spoilt = table.copies.spoilt();
        let catalogue = table.catalogue.clone();
        let made = spoilt.is_empty() || table.copies.replace(&*self.files, &catalogue).is_ok();
        if made { spoilt } else { Vec::new() }
    }

    /// Gives back the room of files that neither copy of the catalogue lists. What is not removed
    /// does no harm.
    fn clear_half_made(&self, table: &mut Table) {
        if table.half_made.is_empty() || !self.settle(table) {
            return;
        }
        for name in table.half_made.drain(..) {
            let _ = self.files.remove_file(Path::new(&name));
        }
    }

    /// Whether both copies of the catalogue say the same: one may list what the other does not.
    fn settle(&self, table: &mut Table) -> bool {
        let catalogue = table.catalogue.clone();
        table.copies.are_settled() || table.copies.replace(&*self.files, &catalogue).is_ok()
    }

    /// Zeroes what lies behind a torn end, up to the end of its span (nothing can lie further on:
    /// no span is drained before the one in front of it is durable), and syncs that, so that the
    /// remains do not come back.
    fn clear_torn_end(&self, table: &Table, found: &Found, end: Lsn) -> Result<(), OpenError> {
        let last = self.geometry.segment_of(end);
        let slot = table.slots.iter().find(|slot| slot.entry.number == last);
        let torn = matches!(found.verdict, End::Torn { .. });
        let Some(slot) = slot.filter(|_| torn) else { return Ok(()) };
        let (from, to) = (end.align_up(BLOCK_BYTES), self.geometry.span_end(end));
        let zeroed = slot.segment.zero(from, to).and_then(|()| slot.segment.sync());
        zeroed.map_err(OpenError::Io)
    }

    /// Starts a new step of generations, on the device, and returns its first. It is above every
    /// generation that any region left behind can have given out, even to frames that were lost.
    fn begin_step(
        &self,
        table: &mut Table,
        found: &Found,
        lost: Option<LsnRange>,
    ) -> Result<u32, OpenError> {
        let generation = table.catalogue.generations_below.max(found.generation.saturating_add(1));
        let mut catalogue = table.catalogue.clone();
        catalogue.generations_below = generation.saturating_add(GENERATION_STEP);
        catalogue.durable = found.sealed;
        catalogue.holes.extend(lost);
        let number = self.geometry.segment_of(found.released);
        if catalogue.entries.iter().any(|entry| entry.number == number) {
            catalogue.first = found.released;
        }
        if !catalogue.is_sensible() {
            // Nobody counts so far: what says so was forged.
            return Err(OpenError::File { name: CATALOGUE.to_owned(), fault: FileFault::Contents });
        }
        table.copies.replace(&*self.files, &catalogue).map_err(OpenError::Io)?;
        table.catalogue = catalogue;
        Ok(generation)
    }

    /// Puts the frames from `start` to `end` into the ring, unless they are there. Those behind the
    /// last seal count as stable only: the block they end in will be written again, so they cannot
    /// count as durable.
    fn refill(
        &self,
        mut ring: Refill<'_>,
        table: &Table,
        found: &Found,
        (start, end): (Lsn, Lsn),
    ) -> Result<(), OpenError> {
        if !ring.has(start, end) {
            ring.read(&mut SpanReader::new(table, self.geometry), start, end)?;
        }
        drop(ring);
        self.region.set_durable(found.sealed.get());
        self.region.release(start.get());
        // Of a ring that was another.
        self.region.word(words::POISON).store(0, Ordering::Relaxed);
        self.region.word(words::MARKED).store(found.released.get(), Ordering::Relaxed);
        self.region.word(words::NEWEST_END).store(end.get(), Ordering::Relaxed);
        self.region.word(words::COVERED).store(0, Ordering::Relaxed);
        Ok(())
    }

    /// The log over a ring that is whole.
    fn assemble(self, table: Table, generation: u32) -> Result<Log, OpenError> {
        let durable = Lsn(self.region.marks().durable);
        let stripes = self.resume_stripes(&table, durable, generation).map_err(OpenError::Io)?;
        self.region.word(words::OPENER).store(self.region.generation(), Ordering::Relaxed);
        Ok(self.over(table, generation, stripes))
    }

    /// The log as the marks of the region have it.
    pub(crate) fn over(self, table: Table, generation: u32, stripes: Option<Stripes>) -> Log {
        let drain = Drain::new(self.geometry, Lsn(self.region.marks().durable));
        let poison = poison_in(&self.region).map(Arc::new);
        Log {
            mender: Mender::of(&table, self.geometry),
            mended_blocks: AtomicU64::new(0),
            segments: Segments::new(self.files, table),
            region: self.region,
            clock: self.clock,
            sealer: self.sealer,
            pads: PadChecks::of(&self.sealer),
            geometry: self.geometry,
            dirty_bytes_max: AtomicU64::new(self.config.dirty_bytes_max),
            retention: self.config.retention,
            generation,
            progress: Mutex::new(Progress::new(drain, stripes, poison)),
            moved: Moved::default(),
            idle_tail: AtomicU64::new(0),
            preparer: Rest::default(),
            cuts: Cuts::default(),
            damaged: DamagedFrames::default(),
        }
    }

    /// Where the parity goes on, if the log has any.
    fn resume_stripes(
        &self,
        table: &Table,
        durable: Lsn,
        generation: u32,
    ) -> io::Result<Option<Stripes>> {
        let Catalogue { identity, segment_bytes, parity, .. } = table.catalogue;
        if parity == Parity::None {
            return Ok(None);
        }
        let number = self.geometry.segment_of(durable);
        let slot = table.slots.iter().find(|slot| slot.entry.number == number);
        let segment = slot.map(|slot| &slot.segment);
        let spec = Spec { identity, generation, segment_bytes };
        Stripes::resume(segment, spec, &self.geometry, durable).map(Some)
    }
}

impl Log {
    /// Makes sure that the catalogue bounds this generation. The region says the one before until
    /// that is done and for a moment longer, in which a process may die: so the step of the new
    /// bound begins with that one.
    fn take_generation(&self, below: u32) -> Result<(), OpenError> {
        if self.generation < below {
            return Ok(());
        }
        let below = (self.generation - 1).saturating_add(GENERATION_STEP);
        self.segments.record(|| self.needs(), below).map_err(OpenError::Io)
    }
}

/// Says in the region that the ring is the log, and in the log that a new generation begins.
/// A ring that is half full, or a poisoned log, does without the mark.
fn begin_generation(log: &Log) -> Result<(), OpenError> {
    // EDGE ring-filled: the ring and its marks are whole before the generation can be seen.
    log.word(words::GENERATION).store(u64::from(log.generation), Ordering::Release);
    match log.append_watermark() {
        Ok(()) | Err(AppendError::Full | AppendError::Poisoned(_)) => Ok(()),
        Err(AppendError::TooLarge { .. }) => unreachable!("a mark fits every span"),
        Err(AppendError::Unmarked(_)) => unreachable!("a watermark is said in the ring alone"),
        Err(AppendError::Unreachable(_)) => unreachable!("this log stands in this process"),
    }
}

/// The failure that a predecessor left in the region.
fn poison_in(region: &Region) -> Option<io::Error> {
    match region.word(words::POISON).load(Ordering::Relaxed) {
        0 => None,
        1 => Some(io::Error::other("a write or sync of the log failed earlier")),
        word => Some(io::Error::from_raw_os_error((word - 1) as i32)),
    }
}

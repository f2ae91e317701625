//! The segment files of an open log, and how more of them become ready.
//!
//! Recycling, in this order, so that a power cut between any two steps leaves a log that opens: the
//! catalogue says that the old stretch is no longer needed and what the file will hold; then the
//! file's header says so too; then a drain may use it. Frames of the earlier round are told from
//! new ones by their position.
//!
//! Promise: a segment that holds bytes at or above `released` is never overwritten; a failed
//! preparation changes nothing that the log depends on, and can be tried again.
//! Never: is on the way of a commit unless nothing was prepared in time.

pub(crate) mod cut;
pub(crate) mod pace;
pub(crate) mod parity;
pub(crate) mod prepare;
pub(crate) mod reconstruct;
pub(crate) mod segment;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use holdfast_core::Lsn;
use holdfast_core::frame::Sealer;
use holdfast_core::ring::Geometry;
use holdfast_io::Files;

use crate::append::needs::{InTurn, Needs};
use crate::error::OpenError;
use crate::format::catalogue::copies::Copies;
use crate::format::catalogue::{Catalogue, ENTRIES_MAX, Entry};
use crate::open::again::Again;
use crate::outcome::Spoilt;
use crate::range::LsnRange;
use crate::segments::cut::Cut;
use crate::segments::pace::Pace;
use crate::segments::segment::{Segment, SegmentHeader};

/// Why no further segment is made: no open would take the catalogue.
const TOO_MANY: &str = "the log has as many segments as it can have; make a checkpoint";

/// One file, and whether a drain may use it.
#[derive(Clone)]
pub(crate) struct Slot {
    pub(crate) entry: Entry,
    pub(crate) segment: Segment,
    pub(crate) ready: bool,
}

/// The catalogue as it is on the device, and the open file of each of its entries, in its order.
pub(crate) struct Table {
    pub(crate) catalogue: Catalogue,
    pub(crate) copies: Copies,
    pub(crate) slots: Vec<Slot>,
    /// Whose records they are, for each segment that is headed.
    pub(crate) label: Vec<u8>,
    /// Files that are not listed, and empty.
    pub(crate) half_made: Vec<String>,
    /// A cut that is not finished. What is read is shown as if it were.
    pub(crate) cut: Option<Cut>,
    /// Blocks that were being written once more. What is read has them.
    pub(crate) again: Option<Again>,
    /// What is wrong with the first file that is missing or has not its length. Zeros take the
    /// place of what is not there.
    pub(crate) absent: Option<OpenError>,
    /// The files that are too long.
    pub(crate) too_long: Vec<Spoilt>,
}

/// All segments of a log.
pub(crate) struct Segments {
    files: Arc<dyn Files>,
    table: Mutex<Table>,
    /// How the catalogue is replaced, in turn: there is one preparation at a time, and drains look
    /// up beside it.
    preparing: InTurn<Copies>,
    /// Whether somebody waits for a preparation that is under way.
    hurry: AtomicBool,
}

impl Segments {
    pub(crate) fn new(files: Arc<dyn Files>, table: Table) -> Segments {
        let (preparing, table) = (InTurn::new(table.copies), Mutex::new(table));
        Segments { files, table, preparing, hurry: AtomicBool::new(false) }
    }

    /// The segment of this number, if a drain may use it.
    pub(crate) fn ready(&self, number: u64) -> Option<Segment> {
        let table = self.table();
        let slot = table.slots.iter().find(|slot| slot.entry.number == number)?;
        slot.ready.then(|| slot.segment.clone())
    }

    /// The segment of this number, if there is one, for reading.
    pub(crate) fn find(&self, number: u64) -> Option<Segment> {
        let table = self.table();
        let slot = table.slots.iter().find(|slot| slot.entry.number == number)?;
        Some(slot.segment.clone())
    }

    /// How many segments from `number` on are ready.
    pub(crate) fn ready_from(&self, number: u64) -> usize {
        let usable = |slot: &&Slot| slot.ready && slot.entry.number >= number;
        self.table().slots.iter().filter(usable).count()
    }

    /// Gets one more segment ready: finishes one that is listed, or recycles the oldest that is no
    /// longer needed, or, if `grow`, makes a new one, leaving the device to others meanwhile.
    /// Returns whether there was one to be had.
    pub(crate) fn prepare_one(&self, needs: impl Fn() -> Needs, grow: bool) -> io::Result<bool> {
        self.preparing.write(needs, |copies, needs| {
            self.prepare(copies, needs, grow, Pace::Beside(&self.hurry))
        })
    }

    /// [`Segments::prepare_one`] for somebody who waits for the segment of this number. What was
    /// under way for it is only hurried, not done twice.
    pub(crate) fn prepare_now(&self, needs: impl Fn() -> Needs, number: u64) -> io::Result<()> {
        self.hurry.store(true, Ordering::Relaxed);
        self.preparing.write(needs, |copies, needs| {
            self.hurry.store(false, Ordering::Relaxed);
            match self.ready(number) {
                Some(_) => Ok(()),
                None => self.prepare(copies, needs, true, Pace::Full).map(|_| ()),
            }
        })
    }

    fn prepare(
        &self,
        copies: &mut Copies,
        needs: Needs,
        grow: bool,
        pace: Pace<'_>,
    ) -> io::Result<bool> {
        if self.finish_listed(copies, needs)? {
            return Ok(true);
        }
        if self.list_recycled(copies, needs)? || (grow && self.list_new(copies, needs, pace)?) {
            return self.finish_listed(copies, needs);
        }
        Ok(false)
    }

    /// Writes the marks and the bound of generations to the catalogue.
    pub(crate) fn record(&self, needs: impl Fn() -> Needs, below: u32) -> io::Result<()> {
        self.preparing.write(needs, |copies, needs| {
            let catalogue = Catalogue { generations_below: below, ..self.marked(needs) };
            self.replace(copies, catalogue)
        })
    }

    /// Writes the marks to the catalogue, of which `released` lies in the segment of this number.
    /// That is listed first, should it not be: a position needs a file that it lies in.
    pub(crate) fn record_released(&self, needs: impl Fn() -> Needs, number: u64) -> io::Result<()> {
        self.preparing.write(needs, |copies, needs| {
            while self.find(number).is_none() {
                // Not with the new position, for which the file of its own segment could be taken.
                self.prepare(copies, self.known(needs), true, Pace::Full)?;
            }
            self.replace(copies, self.marked(needs))
        })
    }

    /// The needs, with nothing released but what the catalogue knows of.
    fn known(&self, needs: Needs) -> Needs {
        Needs { released: self.table().catalogue.first, ..needs }
    }

    /// Makes a cut. Nothing is recycled meanwhile. The marks go into the catalogue first, because
    /// those in the log may be among what is cut off.
    pub(crate) fn cut(
        &self,
        cut: &Cut,
        needs: impl Fn() -> Needs,
        sealer: &Sealer,
        geometry: Geometry,
    ) -> io::Result<()> {
        self.preparing.write(needs, |copies, needs| {
            self.replace(copies, self.marked(needs))?;
            cut.record(&*self.files)?;
            cut.carry_out(sealer, geometry, |number| self.find(number))?;
            let marked = self.marked(needs);
            self.replace(copies, marked.without(cut.stretch()))?;
            Cut::clear(&*self.files)
        })
    }

    fn replace(&self, copies: &mut Copies, catalogue: Catalogue) -> io::Result<()> {
        copies.replace(&*self.files, &catalogue)?;
        self.table().catalogue = catalogue;
        Ok(())
    }

    /// Takes another look at the files for the truth: they are somebody else's.
    pub(crate) fn renew(&self, table: Table) {
        *self.table() = table;
    }

    /// Identity of the log.
    pub(crate) fn identity(&self) -> [u8; 16] {
        self.table().catalogue.identity
    }

    /// The durable mark in the catalogue.
    pub(crate) fn recorded(&self) -> Lsn {
        self.table().catalogue.durable
    }

    /// Where there is nothing of the log.
    pub(crate) fn gaps(&self) -> Vec<LsnRange> {
        self.table().catalogue.gaps()
    }

    /// Where the log begins, as the catalogue says.
    pub(crate) fn first(&self) -> Lsn {
        self.table().catalogue.first
    }

    /// The bound below which every generation used so far lies.
    pub(crate) fn generations_below(&self) -> u32 {
        self.table().catalogue.generations_below
    }

    /// Heads the first segment that is listed, durably, but not ready.
    fn finish_listed(&self, copies: &mut Copies, needs: Needs) -> io::Result<bool> {
        let unready = {
            let table = self.table();
            table.slots.iter().find(|slot| !slot.ready).cloned()
        };
        let Some(slot) = unready else { return Ok(false) };
        if !copies.are_settled() {
            let catalogue = self.table().catalogue.clone();
            copies.replace(&*self.files, &catalogue)?;
        }
        let label = self.table().label.clone();
        let segment = slot.segment.made_again(&*self.files)?;
        segment.write_header(&self.header(slot.entry.number, needs.generation), &label)?;
        let mut table = self.table();
        let listed = table.slots.iter_mut().find(|known| known.entry == slot.entry);
        let listed = listed.expect("only a preparation changes the list");
        (listed.segment, listed.ready) = (segment, true);
        Ok(true)
    }

    /// Lists the file of the oldest segment, if it is not needed, under the next number.
    fn list_recycled(&self, copies: &mut Copies, needs: Needs) -> io::Result<bool> {
        let mut catalogue = self.marked(needs);
        let Some(oldest) = catalogue.entries.first().copied() else { return Ok(false) };
        let end = Lsn((oldest.number + 1) * catalogue.segment_bytes);
        if end > needs.released {
            return Ok(false);
        }
        catalogue.entries.remove(0);
        let entry = Entry { file: oldest.file, number: self.next_number() };
        catalogue.entries.push(entry);
        let segment_start = Lsn(catalogue.entries[0].number * catalogue.segment_bytes);
        catalogue.first = catalogue.first.max(needs.released).max(segment_start);
        let first = catalogue.first;
        catalogue.forget_below(first);
        copies.replace(&*self.files, &catalogue)?;
        let mut table = self.table();
        let segment = table.slots.remove(0).segment;
        table.slots.push(Slot { entry, segment, ready: false });
        table.catalogue = catalogue;
        Ok(true)
    }

    /// Makes a file and lists it under the next number.
    fn list_new(&self, copies: &mut Copies, needs: Needs, pace: Pace<'_>) -> io::Result<bool> {
        let mut catalogue = self.marked(needs);
        if catalogue.entries.len() >= ENTRIES_MAX {
            return Err(io::Error::other(TOO_MANY));
        }
        if !copies.are_settled() {
            // A copy may name the file of an attempt that failed: it takes that back first, and
            // only then may this attempt fail and remove the file.
            let known = self.table().catalogue.clone();
            copies.replace(&*self.files, &known)?;
        }
        let others = catalogue.entries.iter().map(|entry| entry.file);
        let (file, segment) = Segment::make_another(&*self.files, others, catalogue.shape(), pace)?;
        let entry = Entry { file, number: self.next_number() };
        catalogue.entries.push(entry);
        copies.replace(&*self.files, &catalogue)?;
        let mut table = self.table();
        table.slots.push(Slot { entry, segment, ready: false });
        table.catalogue = catalogue;
        Ok(true)
    }

    /// The catalogue with today's marks. `first` stays where it is while its new place is not
    /// listed, which is so exactly at the end of the last segment, and where it was put for a mark
    /// whose space has not been released yet.
    fn marked(&self, needs: Needs) -> Catalogue {
        let mut catalogue = self.table().catalogue.clone();
        catalogue.durable = needs.durable;
        let number = needs.released.get() / catalogue.segment_bytes;
        let is_listed = catalogue.entries.iter().any(|entry| entry.number == number);
        catalogue.first = needs.begin(catalogue.first, is_listed);
        let first = catalogue.first;
        catalogue.forget_below(first);
        catalogue
    }

    fn next_number(&self) -> u64 {
        self.table().slots.last().map_or(0, |slot| slot.entry.number + 1)
    }

    fn header(&self, number: u64, generation: u32) -> SegmentHeader {
        let table = self.table();
        let Catalogue { identity, segment_bytes, .. } = table.catalogue;
        SegmentHeader { identity, generation, number, segment_bytes }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("nothing panics with the table")
    }
}

#[cfg(test)]
mod tests;

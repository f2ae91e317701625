//! Giving a device again what it lacks of what the ring has.
//!
//! A file that is missing or short is made of zeros, and stays short until it has what it should
//! have, so that nobody takes it for an empty one; one that is too long stays so until then. Only
//! blocks that are not as they were are written: a power cut can destroy none that was whole.
//!
//! Promise: what a durable mark in the region says that the device has, it has when this returns,
//! or it is said what it still lacks.
//! Never: writes for a log that is poisoned, or makes a file up that had what the ring lacks.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::Ordering;

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;

use crate::config::Retention;
use crate::error::OpenError;
use crate::format::catalogue::{Entry, LOG_BYTES_MAX};
use crate::format::shape::Shape;
use crate::open::lacking::lacking;
use crate::open::opening::Opening;
use crate::outcome::Spoilt;
use crate::range::LsnRange;
use crate::segments::pace::Pace;
use crate::segments::segment::Segment;
use crate::segments::{Slot, Table};
use crate::words;

/// What became of what the device lacked.
#[derive(Default)]
pub(crate) struct Given {
    /// Written, and synced.
    pub(crate) again: Vec<LsnRange>,
    /// The first that could not be written.
    pub(crate) lacks: Option<LsnRange>,
    /// Files that were too long, and have been cut.
    pub(crate) shortened: Vec<Spoilt>,
}

impl Opening<'_> {
    /// Gives the device what it lacks between two positions of the ring, which is whole. What is
    /// lost for good was refused.
    pub(crate) fn give_again(
        &self,
        table: &mut Table,
        released: Lsn,
        durable: Lsn,
    ) -> Result<Given, OpenError> {
        // What cannot be written is looked at when it can: by `mend`.
        if self.region.word(words::POISON).load(Ordering::Relaxed) != 0 {
            return refuse_unlisted(table, durable).map(|()| Given::default());
        }
        // What a missing file had below is not there: the next open begins at what was released.
        let begin = if table.absent.is_some() { released.advance(1) } else { Lsn::ZERO };
        self.list_up_to(table, released, durable.max(begin))?;
        let pin = self.region.pin(released.get());
        let lacks = lacking(table, self.geometry, (released, durable), &mut |at, into| {
            into.copy_from_slice(pin.bytes(at.get(), into.len()));
            Ok(())
        })?;
        drop(pin);
        if lacks.is_empty() && table.absent.is_none() {
            return Ok(Given::default());
        }
        self.complete(table)?;
        let mut given = Given::default();
        for stretch in lacks {
            match self.rewrite(table, stretch.from, stretch.to) {
                Ok(()) => given.again.push(stretch),
                Err(_) => given.lacks = given.lacks.or(Some(stretch)),
            }
        }
        self.completed(table)?;
        given.shortened = std::mem::take(&mut table.too_long);
        if given.lacks.is_none() {
            self.record(table, released, durable)?;
        }
        Ok(given)
    }

    /// Lists a segment for all below `end`, if there is none: the directory may be an older copy.
    /// The catalogue calls nothing durable that is still to be written.
    pub(crate) fn list_up_to(
        &self,
        table: &mut Table,
        released: Lsn,
        end: Lsn,
    ) -> Result<(), OpenError> {
        if end <= table.catalogue.limit() {
            return Ok(());
        }
        // No log is so long: these marks were forged, and no open would take such a catalogue.
        if end.get() > LOG_BYTES_MAX / 2 {
            return refuse_unlisted(table, end);
        }
        let mut catalogue = table.catalogue.clone();
        let slots = self.slots_up_to(table, released, end)?;
        catalogue.entries = slots.iter().map(|slot| slot.entry).collect();
        let begin = Lsn(catalogue.entries[0].number * catalogue.segment_bytes);
        let released = if catalogue.covers(released) { released } else { begin };
        let first = catalogue.first.max(released).max(begin);
        catalogue.first = first;
        catalogue.durable = catalogue.durable.max(first.align_up(BLOCK_BYTES));
        catalogue.forget_below(first);
        table.copies.replace(&*self.files, &catalogue).map_err(OpenError::Io)?;
        (table.catalogue, table.slots) = (catalogue, slots);
        Ok(())
    }

    /// The segments up to `upto`. A file that has nothing but what was released takes the place of
    /// one that is wanted.
    fn slots_up_to(&self, table: &Table, released: Lsn, upto: Lsn) -> Result<Vec<Slot>, OpenError> {
        let end = |slot: &Slot| Lsn((slot.entry.number + 1) * table.catalogue.segment_bytes);
        let mut slots: VecDeque<Slot> = table.slots.iter().cloned().collect();
        if table.catalogue.limit() <= released {
            for (slot, number) in slots.iter_mut().zip(self.geometry.segment_of(released)..) {
                (slot.entry.number, slot.ready) = (number, false);
            }
        }
        while slots.back().map_or(Lsn::ZERO, end) < upto {
            let number = slots.back().map_or(0, |last| last.entry.number + 1);
            let slot = match slots.pop_front_if(|oldest| end(oldest) <= released) {
                Some(Slot { entry, segment, .. }) => {
                    Slot { entry: Entry { number, ..entry }, segment, ready: false }
                }
                None => self.made(&slots, number, table.catalogue.shape())?,
            };
            slots.push_back(slot);
        }
        Ok(slots.into())
    }

    /// A segment in a file of its own.
    fn made(&self, slots: &VecDeque<Slot>, number: u64, shape: Shape) -> Result<Slot, OpenError> {
        let others = slots.iter().map(|slot| slot.entry.file);
        let (file, segment) = Segment::make_another(&*self.files, others, shape, Pace::Full)
            .map_err(OpenError::Io)?;
        Ok(Slot { entry: Entry { file, number }, segment, ready: false })
    }

    /// Makes the files that are missing or have not their length, all but their last blocks.
    pub(crate) fn complete(&self, table: &mut Table) -> Result<(), OpenError> {
        for slot in table.slots.iter_mut().filter(|slot| slot.segment.is_absent()) {
            slot.segment = slot.segment.complete(&*self.files).map_err(OpenError::Io)?;
        }
        match table.absent.is_some() {
            true => self.files.sync_dir(Path::new("")).map_err(OpenError::Io),
            false => Ok(()),
        }
    }

    /// They have what they should have.
    pub(crate) fn completed(&self, table: &mut Table) -> Result<(), OpenError> {
        for slot in table.slots.iter_mut().filter(|slot| slot.segment.is_absent()) {
            slot.segment = slot.segment.clone().completed().map_err(OpenError::Io)?;
        }
        table.absent = None;
        Ok(())
    }
}

/// Fails if the directory is an older copy that has no place for all that is durable.
fn refuse_unlisted(table: &Table, durable: Lsn) -> Result<(), OpenError> {
    let from = table.catalogue.limit();
    if durable <= from { Ok(()) } else { Err(OpenError::Corrupt { from, to: durable }) }
}

/// Fails if a file that is missing or has not its length, or listed in no older copy of the
/// directory, had something that a reader may ask for, and that lies below what the ring still has.
pub(crate) fn refuse_lost(
    table: &mut Table,
    retention: Retention,
    released: Lsn,
) -> Result<(), OpenError> {
    if retention == Retention::InRing {
        return Ok(());
    }
    let (first, bytes) = (table.catalogue.first, table.catalogue.segment_bytes);
    let has = |number: u64| (number + 1) * bytes > first.get() && number * bytes < released.get();
    let mut absent = table.slots.iter().filter(|slot| slot.segment.is_absent());
    let is_lost = absent.any(|slot| has(slot.entry.number));
    if let Some(absent) = table.absent.take_if(|_| is_lost) {
        return Err(absent);
    }
    let end = table.catalogue.limit();
    if end < released { Err(OpenError::Corrupt { from: end, to: released }) } else { Ok(()) }
}

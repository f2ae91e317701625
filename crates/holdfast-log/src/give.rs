//! Giving a device again what it lacks of what the ring has.
//!
//! A file that is missing or short is made of zeros, and stays short until it has what it should
//! have, so that nobody takes it for an empty one. Only blocks that are not as they were are
//! written: a power cut can destroy none that was whole.
//!
//! Promise: what a durable mark in the region says that the device has, it has when this returns,
//! or it is said what it still lacks.
//! Never: writes for a log that is poisoned, or makes a file up that had what the ring lacks.

use std::path::Path;
use std::sync::atomic::Ordering;

use holdfast_core::Lsn;

use crate::config::Retention;
use crate::error::OpenError;
use crate::lacking::lacking;
use crate::log::Stretch;
use crate::open::Opening;
use crate::segments::Table;
use crate::words;

/// What became of what the device lacked.
#[derive(Default)]
pub(crate) struct Given {
    /// Written, and synced.
    pub(crate) again: Vec<Stretch>,
    /// The first that could not be written.
    pub(crate) lacks: Option<Stretch>,
}

impl Opening<'_> {
    /// Gives the device what it lacks between two positions of the ring, which is whole.
    pub(crate) fn give_again(
        &self,
        table: &mut Table,
        released: Lsn,
        durable: Lsn,
    ) -> Result<Given, OpenError> {
        refuse_lost(table, self.config.retention, released)?;
        // What cannot be written is looked at when it can: by `mend`.
        if self.region.word(words::POISON).load(Ordering::Relaxed) != 0 {
            return Ok(Given::default());
        }
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
        if given.lacks.is_none() {
            self.record(table, released, durable)?;
        }
        Ok(given)
    }

    /// Makes the files that are missing or short, all but their last blocks.
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

/// Fails if a file that is missing or short had something that a reader may ask for, and that lies
/// below what the ring still has.
pub(crate) fn refuse_lost(
    table: &mut Table,
    retention: Retention,
    released: Lsn,
) -> Result<(), OpenError> {
    let (first, bytes) = (table.catalogue.first, table.catalogue.segment_bytes);
    let has = |number: u64| (number + 1) * bytes > first.get() && number * bytes < released.get();
    let mut absent = table.slots.iter().filter(|slot| slot.segment.is_absent());
    let is_lost = absent.any(|slot| has(slot.entry.number));
    match table.absent.take_if(|_| is_lost && retention == Retention::OnDevice) {
        Some(absent) => Err(absent),
        None => Ok(()),
    }
}

//! Holdfast: the typed log of this repository.
//!
//! Promise: a set is one frame of typed records, encoded by the log. Its segments are made with it,
//! and a thread prepares more if they do not suffice; who waits for a set writes it.
//! Never: leaves a set that nobody waits for in memory: another thread of the log drains it.

use std::path::Path;

use holdfast_wal::format::{Format as Written, Json, MessagePack};
use holdfast_wal::{Background, Log, Options};

use super::{Durability, Kind, Peer, Terms, Unsynced, Writer};
use crate::Failure;
use crate::record::{Format, Record};
use crate::set::Set;
use crate::tally::Tally;

pub(super) const KIND: Kind =
    Kind { name: super::OURS, open, read: Some(read), unsynced: Unsynced::Memory };

/// Bytes that nobody waits for and that may be in memory.
const RING_BYTES: u64 = 64 << 20;

struct Typed<F: Written<Record>> {
    log: Log<Record, F>,
    sync: bool,
}

/// What the log is told.
pub(crate) fn options(terms: &Terms) -> Options {
    let (background, ring_bytes) = match terms.durability {
        Durability::Synced => (Background::Prepare, Options::default().ring_bytes),
        Durability::Deferred => (Background::DrainAndPrepare, RING_BYTES),
    };
    let options = Options::new().with_ring_bytes(ring_bytes).with_background(background);
    let segments = terms.bytes.div_ceil(options.segment_bytes) as u32 + 2;
    options.with_segments(segments)
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    match terms.format {
        Format::MessagePack => open_as::<MessagePack>(folder, terms),
        Format::Json => open_as::<Json>(folder, terms),
    }
}

fn open_as<F: Written<Record>>(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let sync = terms.durability == Durability::Synced;
    let (log, _) = Log::<Record, F>::open_or_create(folder, &options(terms))?;
    Ok(Box::new(Typed { log, sync }))
}

fn read(folder: &Path, tally: &mut Tally) -> Result<(), Failure> {
    match tally.format() {
        Format::MessagePack => read_as::<MessagePack>(folder, tally),
        Format::Json => read_as::<Json>(folder, tally),
    }
}

fn read_as<F: Written<Record>>(folder: &Path, tally: &mut Tally) -> Result<(), Failure> {
    let (log, _) = Log::<Record, F>::open(folder, &Options::default())?;
    log.iter().try_for_each(|entry| tally.record(&entry?.record))
}

impl<F: Written<Record>> Peer for Typed<F> {
    fn writer(&self) -> Box<dyn Writer + '_> {
        Box::new(self)
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(self.log.commit()?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.log.close()?)
    }
}

impl<F: Written<Record>> Writer for &Typed<F> {
    fn append(&mut self, set: &mut Set<'_>) -> Result<(), Failure> {
        let ticket = self.log.append_all(set.records())?;
        if self.sync { Ok(ticket.wait()?) } else { Ok(()) }
    }
}

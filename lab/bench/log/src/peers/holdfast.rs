//! Holdfast: the typed log of this repository.
//!
//! Promise: a set is one frame of typed records, encoded by the log. Its segments are made with it,
//! and a thread prepares more if they do not suffice; who waits for a set writes it.
//! Never: leaves a set that nobody waits for in memory: another thread of the log drains it.

use std::path::Path;

use holdfast_wal::format::{Format as Written, Json, MessagePack};
use holdfast_wal::{Background, Keys, Log, Options, Parity};

use super::{Durability, Kind, Peer, Terms, Unsynced, Writer};
use crate::Failure;
use crate::record::{Format, Record};
use crate::set::Set;
use crate::tally::Tally;

pub(super) const KIND: Kind =
    Kind { name: super::OURS, open, read: Some(read), unsynced: Unsynced::Memory };

/// The same, encrypted, and with parity to mend itself from.
pub(crate) const SEALED_PARITY: Kind = Kind {
    name: "sealed_parity",
    open: |folder, terms| open_with(folder, terms, &sealed(options(terms))?),
    read: Some(|folder, tally| read_with(folder, tally, &sealed(Options::default())?)),
    unsynced: Unsynced::Memory,
};

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

fn sealed(options: Options) -> Result<Options, Failure> {
    Ok(options.with_parity(Parity::TenPercent).with_keys(Keys::new((1, &[7; 32]), &[])?))
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    open_with(folder, terms, &options(terms))
}

fn open_with(folder: &Path, terms: &Terms, options: &Options) -> Result<Box<dyn Peer>, Failure> {
    let sync = terms.durability == Durability::Synced;
    match terms.format {
        Format::MessagePack => open_as::<MessagePack>(folder, sync, options),
        Format::Json => open_as::<Json>(folder, sync, options),
    }
}

fn open_as<F: Written<Record>>(
    folder: &Path,
    sync: bool,
    options: &Options,
) -> Result<Box<dyn Peer>, Failure> {
    let (log, _) = Log::<Record, F>::open_or_create(folder, options)?;
    Ok(Box::new(Typed { log, sync }))
}

fn read(folder: &Path, tally: &mut Tally) -> Result<(), Failure> {
    read_with(folder, tally, &Options::default())
}

fn read_with(folder: &Path, tally: &mut Tally, options: &Options) -> Result<(), Failure> {
    match tally.format() {
        Format::MessagePack => read_as::<MessagePack>(folder, tally, options),
        Format::Json => read_as::<Json>(folder, tally, options),
    }
}

fn read_as<F: Written<Record>>(
    folder: &Path,
    tally: &mut Tally,
    options: &Options,
) -> Result<(), Failure> {
    let (log, _) = Log::<Record, F>::open(folder, options)?;
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

//! fjall: its journal, with the memtable that goes with it.
//!
//! Promise: a set is one write batch. The memtable and the journals hold everything, so nothing is
//! flushed or compacted while a clock runs. No compression.
//! Never: writes without the journal.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{Durability, Kind, Peer, Terms, Unsynced, Writer};
use crate::Failure;
use crate::set::Set;
use crate::tally::Tally;

pub(super) const KIND: Kind =
    Kind { name: "fjall", open, read: Some(read), unsynced: Unsynced::Sets };

/// More than any run writes.
const MEMTABLE_BYTES: u64 = 2 << 30;

/// The same for the journals.
const JOURNALS_BYTES: u64 = 8 << 30;

struct Log {
    database: Database,
    records: Keyspace,
    persist: PersistMode,
}

fn open_log(folder: &Path, persist: PersistMode) -> Result<Log, Failure> {
    let database = Database::builder(folder).max_journaling_size(JOURNALS_BYTES).open()?;
    let large = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
    let records = database.keyspace("records", large)?;
    Ok(Log { database, records, persist })
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let persist = match terms.durability {
        Durability::Synced => PersistMode::SyncData,
        Durability::Deferred => PersistMode::Buffer,
    };
    Ok(Box::new(open_log(folder, persist)?))
}

fn read(folder: &Path, tally: &mut Tally) -> Result<(), Failure> {
    let log = open_log(folder, PersistMode::Buffer)?;
    for record in log.records.iter() {
        tally.bytes(&record.value()?)?;
    }
    Ok(())
}

impl Peer for Log {
    fn writer(&self) -> Box<dyn Writer + '_> {
        Box::new(self)
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(self.database.persist(PersistMode::SyncData)?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Writer for &Log {
    fn append(&mut self, set: &mut Set<'_>) -> Result<(), Failure> {
        let mut batch = self.database.batch().durability(Some(self.persist));
        for (id, bytes) in set.encode()? {
            // In this order of bytes keys are sorted as numbers are.
            batch.insert(&self.records, id.to_be_bytes(), bytes);
        }
        Ok(batch.commit()?)
    }
}

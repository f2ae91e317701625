//! RocksDB: its log, with the memtable that goes with it.
//!
//! Promise: a set is one write batch. The memtable holds everything, so nothing is flushed or
//! compacted while a clock runs; writes are pipelined. Reading takes the database read-only, which
//! fills the memtable from the log and writes nothing.
//! Never: writes without the log.

use std::path::Path;

use rocksdb::{DB, Options, WriteBatch, WriteOptions};

use super::{Durability, Kind, Peer, Terms, Unsynced, Writer};
use crate::Failure;
use crate::set::Set;
use crate::tally::Tally;

pub(super) const KIND: Kind =
    Kind { name: "rocksdb", open, read: Some(read), unsynced: Unsynced::Sets };

/// More than any run writes.
const MEMTABLE_BYTES: usize = 2 << 30;

struct Log {
    database: DB,
    options: WriteOptions,
}

fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_write_buffer_size(MEMTABLE_BYTES);
    options.set_enable_pipelined_write(true);
    options.set_disable_auto_compactions(true);
    options
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let mut write = WriteOptions::default();
    write.set_sync(terms.durability == Durability::Synced);
    Ok(Box::new(Log { database: DB::open(&options(), folder)?, options: write }))
}

fn read(folder: &Path, tally: &mut Tally) -> Result<(), Failure> {
    let database = DB::open_for_read_only(&options(), folder, false)?;
    let mut records = database.raw_iterator();
    records.seek_to_first();
    while let Some(bytes) = records.value() {
        tally.bytes(bytes)?;
        records.next();
    }
    Ok(records.status()?)
}

impl Peer for Log {
    fn writer(&self) -> Box<dyn Writer + '_> {
        Box::new(self)
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(self.database.flush_wal(true)?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Writer for &Log {
    fn append(&mut self, set: &mut Set<'_>) -> Result<(), Failure> {
        let mut batch = WriteBatch::default();
        for (id, bytes) in set.encode()? {
            // In this order of bytes keys are sorted as numbers are.
            batch.put(id.to_be_bytes(), bytes);
        }
        Ok(self.database.write_opt(batch, &self.options)?)
    }
}

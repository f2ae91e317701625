//! RocksDB with transactions that lock.
//!
//! Promise: a row is locked when it is read; a commit that is not synced has been written to its
//! log. All tables are in one family of columns, told apart by the first byte of a key. Memtables
//! and compactions are as they come, without compression.
//! Never: writes without the log.

use std::ops::Range;
use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, DBCompressionType, Options, Transaction, TransactionDB,
    TransactionDBOptions, TransactionOptions, WriteBatchWithTransaction, WriteOptions,
};

use super::{Change, Durability, ENTRIES, Entries, Kind, Peer, Terms, Worker};
use crate::Failure;
use crate::tpcb::{self, Move, Row, Rows, Table, Total};

pub(super) const KIND: Kind =
    Kind { name: "rocksdb", open, has_log: true, kills_lose: false, has_entries: true };

/// More than any run writes, where nothing is to leave the log.
const PUT_OFF_BYTES: usize = 4 << 30;

/// The longest key: a table and a place in the history.
const KEY_BYTES_MAX: usize = 13;

struct Store {
    database: TransactionDB,
    write: WriteOptions,
    transaction: TransactionOptions,
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::None);
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(terms.cache_bytes)?);
    options.set_block_based_table_factory(&blocks);
    if terms.put_off {
        options.set_write_buffer_size(PUT_OFF_BYTES);
    }
    let mut write = WriteOptions::default();
    write.set_sync(terms.durability == Durability::Synced);
    let database = TransactionDB::open(&options, &TransactionDBOptions::default(), folder)?;
    Ok(Box::new(Store { database, write, transaction: TransactionOptions::default() }))
}

/// A key with its table before it.
fn placed(table: Table, key: &[u8], within: &mut [u8; KEY_BYTES_MAX]) -> usize {
    within[0] = table as u8;
    within[1..=key.len()].copy_from_slice(key);
    key.len() + 1
}

impl Peer for Store {
    fn fill(&self, table: Table, ids: Range<u64>) -> Result<(), Failure> {
        let mut batch = WriteBatchWithTransaction::<true>::default();
        let mut within = [0; KEY_BYTES_MAX];
        for (key, row) in tpcb::chunk(table, ids) {
            let end = placed(table, &key, &mut within);
            batch.put(&within[..end], row);
        }
        Ok(self.database.write_opt(batch, &self.write)?)
    }

    fn take(&self, table: Table, ids: &[u64]) -> Result<(), Failure> {
        let mut batch = WriteBatchWithTransaction::<true>::default();
        let mut within = [0; KEY_BYTES_MAX];
        for id in ids {
            let end = placed(table, &id.to_be_bytes(), &mut within);
            batch.delete(&within[..end]);
        }
        Ok(self.database.write_opt(batch, &self.write)?)
    }

    fn head(&self, table: Table) -> Result<Option<u64>, Failure> {
        let mut rows = self.database.raw_iterator();
        rows.seek([table as u8]);
        let first = rows.key().filter(|key| key[0] == table as u8);
        let id = first.map(|key| tpcb::id(&key[1..])).transpose()?;
        rows.status()?;
        Ok(id)
    }

    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        Ok(Box::new(self))
    }

    fn entries(&self) -> Option<&dyn Entries> {
        Some(self)
    }

    fn total(&self, table: Table) -> Result<Total, Failure> {
        let mut total = Total::default();
        let mut rows = self.database.raw_iterator();
        rows.seek([table as u8]);
        while rows.key().is_some_and(|key| key[0] == table as u8) {
            total.add(rows.value().unwrap_or_default())?;
            rows.next();
        }
        rows.status()?;
        Ok(total)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// A key of any length with the table of entries before it.
fn entry(key: &[u8]) -> Vec<u8> {
    [&[ENTRIES as u8], key].concat()
}

impl Entries for Store {
    fn change(&self, changes: Vec<Change>) -> Result<(), Failure> {
        let open = self.database.transaction_opt(&self.write, &self.transaction);
        for change in changes {
            match change {
                Change::Put(key, value) => open.put(entry(&key), value)?,
                Change::Delete(key) => open.delete(entry(&key))?,
                // Its ranges are for who has no transaction.
                Change::DeleteAll(keys) => {
                    keys.iter().try_for_each(|key| open.delete(entry(key)))?;
                }
            }
        }
        Ok(open.commit()?)
    }

    fn each(&self, look: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let mut rows = self.database.raw_iterator();
        rows.seek([ENTRIES as u8]);
        while let Some((key, value)) = rows.item().filter(|(key, _)| key[0] == ENTRIES as u8) {
            look(&key[1..], value);
            rows.next();
        }
        Ok(rows.status()?)
    }
}

impl Worker for &Store {
    fn transaction(&mut self, it: &Move) -> Result<(), Failure> {
        let mut open = self.database.transaction_opt(&self.write, &self.transaction);
        tpcb::apply(&mut open, it)?;
        Ok(open.commit()?)
    }
}

impl Rows for Transaction<'_, TransactionDB> {
    fn read(&mut self, table: Table, key: &[u8], row: &mut Row) -> Result<(), Failure> {
        let mut within = [0; KEY_BYTES_MAX];
        let end = placed(table, key, &mut within);
        let found = self.get_pinned_for_update(&within[..end], true)?;
        row.copy_from_slice(&found.ok_or("a row is gone")?);
        Ok(())
    }

    fn write(&mut self, table: Table, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        let mut within = [0; KEY_BYTES_MAX];
        let end = placed(table, key, &mut within);
        Ok(self.put(&within[..end], row)?)
    }
}

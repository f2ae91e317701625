//! fjall with optimistic transactions.
//!
//! Promise: a transaction whose rows another has changed meanwhile goes again; a commit that is not
//! synced has been written to its journal. Memtables and compactions are as they come, without
//! compression.
//! Never: writes without the journal.

use std::ops::Range;
use std::path::Path;

use fjall::{
    KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx,
    PersistMode, Readable,
};

use super::{Change, Durability, ENTRIES, Entries, Kind, Peer, Terms, Worker};
use crate::Failure;
use crate::tpcb::{self, Move, Row, Rows, Table, Total};

pub(super) const KIND: Kind =
    Kind { name: "fjall", open, has_log: true, kills_lose: false, has_entries: true };

/// More than any run writes, where nothing is to leave the journal.
const PUT_OFF_BYTES: u64 = 4 << 30;

struct Store {
    database: OptimisticTxDatabase,
    /// In the order of [`Table::ALL`].
    tables: [OptimisticTxKeyspace; 4],
    persist: PersistMode,
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let mut builder = OptimisticTxDatabase::builder(folder).cache_size(terms.cache_bytes as u64);
    if terms.put_off {
        builder = builder.max_journaling_size(2 * PUT_OFF_BYTES);
    }
    let database = builder.open()?;
    let options = || match terms.put_off {
        true => KeyspaceCreateOptions::default().max_memtable_size(PUT_OFF_BYTES),
        false => KeyspaceCreateOptions::default(),
    };
    let [one, two, three, four] = Table::ALL.map(|table| database.keyspace(table.name(), options));
    let tables = [one?, two?, three?, four?];
    let persist = match terms.durability {
        Durability::Synced => PersistMode::SyncData,
        Durability::Kernel => PersistMode::Buffer,
    };
    Ok(Box::new(Store { database, tables, persist }))
}

impl Store {
    fn begin(&self) -> Result<OptimisticWriteTx, Failure> {
        Ok(self.database.write_tx()?.durability(Some(self.persist)))
    }
}

impl Peer for Store {
    fn fill(&self, table: Table, ids: Range<u64>) -> Result<(), Failure> {
        let mut open = self.begin()?;
        for (key, row) in tpcb::chunk(table, ids) {
            open.insert(&self.tables[table as usize], key, row);
        }
        Ok(open.commit()??)
    }

    fn take(&self, table: Table, ids: &[u64]) -> Result<(), Failure> {
        let mut open = self.begin()?;
        for id in ids {
            open.remove(&self.tables[table as usize], id.to_be_bytes());
        }
        Ok(open.commit()??)
    }

    fn head(&self, table: Table) -> Result<Option<u64>, Failure> {
        let first = self.database.read_tx().iter(&self.tables[table as usize]).next();
        first.map(|row| tpcb::id(&row.key()?)).transpose()
    }

    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        Ok(Box::new(self))
    }

    fn entries(&self) -> Option<&dyn Entries> {
        Some(self)
    }

    fn total(&self, table: Table) -> Result<Total, Failure> {
        let mut total = Total::default();
        for row in self.database.read_tx().iter(&self.tables[table as usize]) {
            total.add(&row.value()?)?;
        }
        Ok(total)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Entries for Store {
    fn change(&self, changes: Vec<Change>) -> Result<(), Failure> {
        let (mut open, table) = (self.begin()?, &self.tables[ENTRIES as usize]);
        for change in changes {
            match change {
                Change::Put(key, value) => open.insert(table, key, value),
                Change::Delete(key) => open.remove(table, key),
                // It has no ranges.
                Change::DeleteAll(keys) => {
                    keys.into_iter().for_each(|key| open.remove(table, key));
                }
            }
        }
        Ok(open.commit()??)
    }

    fn each(&self, look: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        for entry in self.database.read_tx().iter(&self.tables[ENTRIES as usize]) {
            let (key, value) = entry.into_inner()?;
            look(&key, &value);
        }
        Ok(())
    }
}

impl Worker for &Store {
    fn transaction(&mut self, it: &Move) -> Result<(), Failure> {
        loop {
            let mut open = Open { store: self, transaction: self.begin()? };
            tpcb::apply(&mut open, it)?;
            if open.transaction.commit()?.is_ok() {
                return Ok(());
            }
        }
    }
}

/// A transaction and the tables it is in.
struct Open<'a> {
    store: &'a Store,
    transaction: OptimisticWriteTx,
}

impl Rows for Open<'_> {
    fn read(&mut self, table: Table, key: &[u8], row: &mut Row) -> Result<(), Failure> {
        let found = self.transaction.get(&self.store.tables[table as usize], key)?;
        row.copy_from_slice(&found.ok_or("a row is gone")?);
        Ok(())
    }

    fn write(&mut self, table: Table, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        self.transaction.insert(&self.store.tables[table as usize], key, row);
        Ok(())
    }
}

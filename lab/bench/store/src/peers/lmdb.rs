//! LMDB.
//!
//! Promise: a commit that is not synced has been written into the pages that the kernel has of its
//! file.
//! Never: has two writers.

#[allow(unsafe_code)]
mod raw;

use std::ops::{Bound, Range};
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, RwTxn};

use super::{Change, ENTRIES, Entries, Kind, Peer, Terms, Worker};
use crate::Failure;
use crate::tpcb::{self, Move, Row, Rows, Table, Total};

pub(super) const KIND: Kind =
    Kind { name: "lmdb", open, has_log: false, kills_lose: false, has_entries: true };

type Tables = [Database<'static, Bytes, Bytes>; 4];

struct Store {
    environment: Env,
    /// In the order of [`Table::ALL`].
    tables: Tables,
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let environment = raw::open(folder, terms.durability)?;
    let write = environment.write_txn()?;
    let tables = environment.create_databases_and_commit(write, |within, write| {
        let [one, two, three, four] =
            Table::ALL.map(|table| within.create_database(write, Some(table.name())));
        heed::Result::Ok(CommitOrAbort::<_, ()>::Commit([one?, two?, three?, four?]))
    })?;
    Ok(Box::new(Store { environment, tables: tables.unwrap_commit() }))
}

impl Peer for Store {
    fn fill(&self, table: Table, ids: Range<u64>) -> Result<(), Failure> {
        let mut open = self.environment.write_txn()?;
        for (key, row) in tpcb::chunk(table, ids) {
            self.tables[table as usize].put(&mut open, &key, &row)?;
        }
        Ok(open.commit()?)
    }

    fn take(&self, table: Table, ids: &[u64]) -> Result<(), Failure> {
        let mut open = self.environment.write_txn()?;
        for id in ids {
            self.tables[table as usize].delete(&mut open, &id.to_be_bytes())?;
        }
        Ok(open.commit()?)
    }

    fn head(&self, table: Table) -> Result<Option<u64>, Failure> {
        let read = self.environment.read_txn()?;
        let first = self.tables[table as usize].first(&read)?;
        first.map(|(key, _)| tpcb::id(key)).transpose()
    }

    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        Ok(Box::new(self))
    }

    fn entries(&self) -> Option<&dyn Entries> {
        Some(self)
    }

    fn total(&self, table: Table) -> Result<Total, Failure> {
        let mut total = Total::default();
        let read = self.environment.read_txn()?;
        for entry in self.tables[table as usize].iter(&read)? {
            total.add(entry?.1)?;
        }
        Ok(total)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        // It is found open by the next one in this process if it is not waited for.
        self.environment.prepare_for_closing().wait();
        Ok(())
    }
}

impl Entries for Store {
    fn change(&self, changes: Vec<Change>) -> Result<(), Failure> {
        let (mut open, table) = (self.environment.write_txn()?, &self.tables[ENTRIES as usize]);
        for change in changes {
            match change {
                Change::Put(key, value) => table.put(&mut open, &key, &value)?,
                Change::Delete(key) => drop(table.delete(&mut open, &key)?),
                Change::DeleteAll(keys) => {
                    let (first, last) = (&keys[0][..], &keys[keys.len() - 1][..]);
                    let range = (Bound::Included(first), Bound::Included(last));
                    table.delete_range(&mut open, &range)?;
                }
            }
        }
        Ok(open.commit()?)
    }

    fn each(&self, look: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let read = self.environment.read_txn()?;
        for entry in self.tables[ENTRIES as usize].iter(&read)? {
            let (key, value) = entry?;
            look(key, value);
        }
        Ok(())
    }
}

impl Worker for &Store {
    fn transaction(&mut self, it: &Move) -> Result<(), Failure> {
        let mut open = Open { tables: &self.tables, write: self.environment.write_txn()? };
        tpcb::apply(&mut open, it)?;
        Ok(open.write.commit()?)
    }
}

/// A transaction and the tables it is in.
struct Open<'a> {
    tables: &'a Tables,
    write: RwTxn<'a>,
}

impl Rows for Open<'_> {
    fn read(&mut self, table: Table, key: &[u8], row: &mut Row) -> Result<(), Failure> {
        let found = self.tables[table as usize].get(&self.write, key)?;
        row.copy_from_slice(found.ok_or("a row is gone")?);
        Ok(())
    }

    fn write(&mut self, table: Table, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        Ok(self.tables[table as usize].put(&mut self.write, key, row)?)
    }
}

//! redb.
//!
//! Promise: a commit that is not synced is in its memory alone, which is all that it offers.
//! Never: has two writers.

use std::ops::Range;
use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use super::{Change, Durability, ENTRIES, Entries, Kind, Peer, Terms, Worker};
use crate::Failure;
use crate::tpcb::{self, Move, Row, Rows, Table, Total};

pub(super) const KIND: Kind =
    Kind { name: "redb", open, has_log: false, kills_lose: true, has_entries: true };

type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;
type OpenTable<'a> = redb::Table<'a, &'static [u8], &'static [u8]>;

struct Store {
    database: Database,
    durability: redb::Durability,
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let mut builder = Database::builder();
    builder.set_cache_size(terms.cache_bytes);
    let database = builder.create(folder.join("bank.redb"))?;
    let durability = match terms.durability {
        Durability::Synced => redb::Durability::Immediate,
        Durability::Kernel => redb::Durability::None,
    };
    Ok(Box::new(Store { database, durability }))
}

fn definition(table: Table) -> Definition {
    TableDefinition::new(table.name())
}

impl Store {
    fn begin(&self) -> Result<WriteTransaction, Failure> {
        let mut open = self.database.begin_write()?;
        open.set_durability(self.durability)?;
        Ok(open)
    }
}

impl Peer for Store {
    fn fill(&self, table: Table, ids: Range<u64>) -> Result<(), Failure> {
        let open = self.begin()?;
        {
            let mut rows = open.open_table(definition(table))?;
            for (key, row) in tpcb::chunk(table, ids) {
                rows.insert(&key[..], &row[..])?;
            }
        }
        Ok(open.commit()?)
    }

    fn take(&self, table: Table, ids: &[u64]) -> Result<(), Failure> {
        let open = self.begin()?;
        {
            let mut rows = open.open_table(definition(table))?;
            for id in ids {
                rows.remove(&id.to_be_bytes()[..])?;
            }
        }
        Ok(open.commit()?)
    }

    fn head(&self, table: Table) -> Result<Option<u64>, Failure> {
        let rows = self.database.begin_read()?.open_table(definition(table))?;
        let first = rows.first()?;
        first.map(|(key, _)| tpcb::id(key.value())).transpose()
    }

    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        Ok(Box::new(self))
    }

    fn entries(&self) -> Option<&dyn Entries> {
        Some(self)
    }

    fn total(&self, table: Table) -> Result<Total, Failure> {
        let mut total = Total::default();
        let rows = match self.database.begin_read()?.open_table(definition(table)) {
            // A table is made when it is first written.
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(total),
            opened => opened?,
        };
        for entry in rows.iter()? {
            total.add(entry?.1.value())?;
        }
        Ok(total)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Entries for Store {
    fn change(&self, changes: Vec<Change>) -> Result<(), Failure> {
        let open = self.begin()?;
        {
            let mut rows = open.open_table(definition(ENTRIES))?;
            for change in changes {
                match change {
                    Change::Put(key, value) => drop(rows.insert(&key[..], &value[..])?),
                    Change::Delete(key) => drop(rows.remove(&key[..])?),
                    Change::DeleteAll(keys) => {
                        let range = &keys[0][..]..=&keys[keys.len() - 1][..];
                        rows.retain_in(range, |_, _| false)?;
                    }
                }
            }
        }
        Ok(open.commit()?)
    }

    fn each(&self, look: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let rows = self.database.begin_read()?.open_table(definition(ENTRIES))?;
        for entry in rows.iter()? {
            let (key, value) = entry?;
            look(key.value(), value.value());
        }
        Ok(())
    }
}

impl Worker for &Store {
    fn transaction(&mut self, it: &Move) -> Result<(), Failure> {
        let open = self.begin()?;
        {
            let [one, two, three, four] =
                Table::ALL.map(|table| open.open_table(definition(table)));
            tpcb::apply(&mut Open([one?, two?, three?, four?]), it)?;
        }
        Ok(open.commit()?)
    }
}

/// The tables of a transaction, in the order of [`Table::ALL`].
struct Open<'a>([OpenTable<'a>; 4]);

impl Rows for Open<'_> {
    fn read(&mut self, table: Table, key: &[u8], row: &mut Row) -> Result<(), Failure> {
        let found = self.0[table as usize].get(key)?;
        row.copy_from_slice(found.ok_or("a row is gone")?.value());
        Ok(())
    }

    fn write(&mut self, table: Table, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        self.0[table as usize].insert(key, row)?;
        Ok(())
    }
}

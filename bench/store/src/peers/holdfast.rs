//! This repository's store.
//!
//! Promise: a row is locked and changed in one call. A commit that is not synced is in a ring that
//! outlives its process, as long as the machine runs.
//! Never: is told more than another.

use std::ops::{Range, RangeFrom};
use std::path::Path;

use holdfast_memory::Medium;
use holdfast_store::{Config, Durability as Awaited, LogPlace, Store, Transaction, Tree};

use super::{Durability, Kind, Peer, Terms, Worker};
use crate::Failure;
use crate::tpcb::{self, CLIENTS_MAX, Move, NUMBERS, Row, Rows, Table, Total};

pub(super) const KIND: Kind = Kind { name: super::OURS, open, has_log: true, kills_lose: false };

/// Bytes of the ring.
const RING_BYTES: u64 = 32 << 20;

/// Bytes of a segment of the log.
const SEGMENT_BYTES: u64 = 4 << 20;

/// Rows that are added up in a transaction.
const CHUNK: usize = 1000;

struct Bank {
    store: Store,
    /// In the order of [`Table::ALL`].
    tables: [Tree; 4],
    awaited: Awaited,
}

impl Bank {
    /// Adds rows up, of these ids until one is not there.
    fn add_all<const N: usize>(
        &self,
        table: Table,
        ids: RangeFrom<u64>,
        key: impl Fn(u64) -> [u8; N],
        total: &mut Total,
    ) -> Result<(), Failure> {
        for first in ids.step_by(CHUNK) {
            // Each has its locks until it ends, so no transaction has all.
            let mut open = self.store.begin();
            for id in (first..).take(CHUNK) {
                match open.get(&self.tables[table as usize], &key(id))? {
                    Some(row) => total.add(&row)?,
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }
}

fn config(folder: &Path, terms: &Terms) -> Config {
    let memory = match terms.durability {
        Durability::Synced => Medium::Private,
        Durability::Kernel => Medium::Shm { path: folder.join("ring") },
    };
    let log = LogPlace::Embedded { memory, ring_bytes: RING_BYTES, segment_bytes: SEGMENT_BYTES };
    Config { pool_bytes: terms.cache_bytes as u64, log, ..Config::default() }
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let (store, _) = Store::open(folder, &config(folder, terms))?;
    let [one, two, three, four] = Table::ALL.map(|table| store.tree(table.name()));
    let tables = [one?, two?, three?, four?];
    let awaited = match terms.durability {
        Durability::Synced => Awaited::Disk,
        Durability::Kernel => Awaited::Memory,
    };
    Ok(Box::new(Bank { store, tables, awaited }))
}

impl Peer for Bank {
    fn fill(&self, table: Table, ids: Range<u64>) -> Result<(), Failure> {
        let mut open = self.store.begin();
        for (key, row) in tpcb::chunk(table, ids) {
            open.insert(&self.tables[table as usize], &key, &row)?;
        }
        open.commit(self.awaited)?;
        Ok(())
    }

    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        Ok(Box::new(self))
    }

    fn total(&self, table: Table) -> Result<Total, Failure> {
        let mut total = Total::default();
        match table {
            Table::History => {
                for client in 0..CLIENTS_MAX {
                    for first in [0, NUMBERS] {
                        self.add_all(table, first.., |it| tpcb::line_key(client, it), &mut total)?;
                    }
                }
            }
            rows => self.add_all(rows, 0.., tpcb::key, &mut total)?,
        }
        Ok(total)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.store.close()?)
    }
}

impl Worker for &Bank {
    fn transaction(&mut self, it: &Move) -> Result<(), Failure> {
        let mut open = Open { tables: &self.tables, transaction: self.store.begin() };
        tpcb::apply(&mut open, it)?;
        open.transaction.commit(self.awaited)?;
        Ok(())
    }
}

/// A transaction and the trees it is in.
struct Open<'a> {
    tables: &'a [Tree; 4],
    transaction: Transaction<'a>,
}

impl Rows for Open<'_> {
    fn read(&mut self, table: Table, key: &[u8], row: &mut Row) -> Result<(), Failure> {
        let found = self.transaction.get_for_update(&self.tables[table as usize], key)?;
        row.copy_from_slice(&found.ok_or("a row is gone")?);
        Ok(())
    }

    fn write(&mut self, table: Table, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        Ok(self.transaction.put(&self.tables[table as usize], key, row)?)
    }

    fn add(&mut self, table: Table, key: &[u8], delta: i64) -> Result<i64, Failure> {
        let mut done = Err("a row is gone".into());
        let change = |row: &mut Vec<u8>| done = tpcb::add(row, delta);
        self.transaction.update(&self.tables[table as usize], key, change)?;
        done
    }
}

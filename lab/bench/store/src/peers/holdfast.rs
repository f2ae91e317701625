//! This repository's store.
//!
//! Promise: a row is locked and changed in one call. A commit that is not synced is in a ring that
//! outlives its process, as long as the machine runs.
//! Never: is told more than another.

use std::ops::{Bound, Range};
use std::path::{Path, PathBuf};

use holdfast_memory::Medium;
use holdfast_store::{
    Config, Direction, Durability as Awaited, Keep, LogPlace, Service, Services, Store,
    Transaction, Tree,
};

use super::{Change, Durability, ENTRIES, Entries, Kind, Peer, Terms, Worker};
use crate::Failure;
use crate::tpcb::{self, Move, ROW_BYTES, Row, Rows, Table, Total};

pub(super) const KIND: Kind =
    Kind { name: super::OURS, open, has_log: true, kills_lose: false, has_entries: true };

/// Bytes of the ring.
const RING_BYTES: u64 = 32 << 20;

/// Bytes of a segment of the log.
const SEGMENT_BYTES: u64 = 4 << 20;

/// Rows that are added up in a transaction.
const CHUNK: usize = 1000;

/// A store of ours with its tables.
pub(crate) struct Bank {
    pub(crate) store: Store,
    /// In the order of [`Table::ALL`].
    tables: [Tree; 4],
    awaited: Awaited,
    folder: PathBuf,
    config: Config,
}

/// What a store is told for these terms.
pub(crate) fn config(folder: &Path, terms: &Terms) -> Config {
    let memory = match terms.durability {
        Durability::Synced => Medium::Private,
        Durability::Kernel => Medium::Shm { path: folder.join("ring") },
    };
    let log = LogPlace::Embedded { memory, ring_bytes: RING_BYTES, segment_bytes: SEGMENT_BYTES };
    let mut config = Config { pool_bytes: terms.cache_bytes as u64, log, ..Config::default() };
    if !terms.keeps_past {
        config.keep = Keep::Repair;
    }
    if terms.put_off {
        config.clean_every_bytes = u64::MAX;
    }
    config
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    Ok(Box::new(Bank::open(folder, &config(folder, terms), terms.durability)?))
}

impl Bank {
    /// Opens or makes it.
    pub(crate) fn open(
        folder: &Path,
        config: &Config,
        durability: Durability,
    ) -> Result<Bank, Failure> {
        let (store, _) = Store::open(folder, config)?;
        let [one, two, three, four] = Table::ALL.map(|table| store.tree(table.name()));
        let tables = [one?, two?, three?, four?];
        let awaited = match durability {
            Durability::Synced => Awaited::Disk,
            Durability::Kernel => Awaited::Memory,
        };
        let (folder, config) = (folder.into(), config.clone());
        Ok(Bank { store, tables, awaited, folder, config })
    }

    /// Does one transaction. Returns what it read and wrote.
    pub(crate) fn transact(&self, it: &Move) -> Result<Read, Failure> {
        let (transaction, account) = (self.store.begin(), [0; ROW_BYTES]);
        let mut open = Open { tables: &self.tables, transaction, read: Read { account } };
        tpcb::apply(&mut open, it)?;
        open.transaction.commit(self.awaited)?;
        Ok(open.read)
    }

    /// Adds one to each of these accounts, in one transaction; they are in order.
    pub(crate) fn bump(&self, accounts: &[u64]) -> Result<(), Failure> {
        let mut one = self.store.begin();
        for account in accounts {
            let mut done = Err("a row is gone".into());
            let change = |row: &mut Vec<u8>| done = tpcb::add(row, 1);
            one.update(&self.tables[Table::Accounts as usize], &tpcb::key(*account), change)?;
            done?;
        }
        one.commit(self.awaited)?;
        Ok(())
    }

    /// The tree of a table.
    pub(crate) fn table(&self, table: Table) -> Tree {
        self.tables[table as usize]
    }

    /// How often a page was found damaged.
    pub(crate) fn faults(&self) -> u64 {
        let stat = self.store.stat();
        stat.faults.iter().map(|(_, count)| count).sum::<u64>() + stat.rebuilt_pages
    }
}

/// What a transaction read.
pub(crate) struct Read {
    /// The account, with what was added to it.
    pub(crate) account: Row,
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

    fn take(&self, table: Table, ids: &[u64]) -> Result<(), Failure> {
        let mut open = self.store.begin();
        for id in ids {
            open.delete(&self.tables[table as usize], &id.to_be_bytes())?;
        }
        open.commit(self.awaited)?;
        Ok(())
    }

    fn head(&self, table: Table) -> Result<Option<u64>, Failure> {
        let mut open = self.store.begin();
        let rows = open.scan::<&[u8]>(&self.tables[table as usize], .., Direction::Up).next();
        rows.map(|row| tpcb::id(&row?.0)).transpose()
    }

    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        Ok(Box::new(self))
    }

    fn entries(&self) -> Option<&dyn Entries> {
        Some(self)
    }

    fn total(&self, table: Table) -> Result<Total, Failure> {
        let (mut total, mut after) = (Total::default(), Bound::Unbounded);
        loop {
            // What a transaction has read is locked until it ends, so none reads all.
            let mut open = self.store.begin();
            let range = (after, Bound::Unbounded);
            let rows = open.scan(&self.tables[table as usize], range, Direction::Up);
            let rows = rows.take(CHUNK).collect::<Result<Vec<_>, _>>()?;
            rows.iter().try_for_each(|(_, row)| total.add(row))?;
            match rows.into_iter().next_back() {
                Some((last, _)) => after = Bound::Excluded(last),
                None => return Ok(total),
            }
        }
    }

    fn log_bytes(&self) -> Option<u64> {
        Some(self.store.stat().log.tail.0)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        let config =
            Config { clean_every_bytes: 1, services: Services::Stepped, ..self.config.clone() };
        self.store.close()?;
        // All that it has put off is a part of what it costs.
        let (store, _) = Store::open(&self.folder, &config)?;
        while store.step(Service::Clean)? {}
        Ok(store.close()?)
    }
}

impl Entries for Bank {
    fn change(&self, changes: Vec<Change>) -> Result<(), Failure> {
        let (mut open, tree) = (self.store.begin(), &self.tables[ENTRIES as usize]);
        for change in changes {
            match change {
                Change::Put(key, value) => open.put(tree, &key, &value)?,
                Change::Delete(key) => drop(open.delete(tree, &key)?),
                Change::DeleteAll(keys) => {
                    open.delete_range::<&Vec<u8>>(tree, &keys[0]..=&keys[keys.len() - 1])?;
                }
            }
        }
        open.commit(self.awaited)?;
        Ok(())
    }

    fn each(&self, look: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let snapshot = self.store.snapshot()?;
        for entry in snapshot.scan::<&[u8]>(&self.tables[ENTRIES as usize], .., Direction::Up) {
            let (key, value) = entry?;
            look(&key, &value);
        }
        Ok(())
    }
}

impl Worker for &Bank {
    fn transaction(&mut self, it: &Move) -> Result<(), Failure> {
        self.transact(it).map(drop)
    }
}

/// A transaction and the trees it is in.
struct Open<'a> {
    tables: &'a [Tree; 4],
    transaction: Transaction<'a>,
    read: Read,
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
        let read = &mut self.read;
        let change = |row: &mut Vec<u8>| {
            done = tpcb::add(row, delta);
            if table == Table::Accounts {
                read.account.copy_from_slice(row);
            }
        };
        self.transaction.update(&self.tables[table as usize], key, change)?;
        done
    }
}

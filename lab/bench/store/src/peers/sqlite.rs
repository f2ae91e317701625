//! SQLite with its write-ahead log.
//!
//! Promise: threads take turns at a mutex instead of waiting for its lock with sleeps, which is
//! faster; statements are prepared once. A commit that is not synced has been written to its log.
//! Never: reads a row that it only adds to.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, TransactionBehavior, params};

use super::{Durability, Kind, Peer, Terms, Worker};
use crate::Failure;
use crate::tpcb::{self, BALANCE_BYTES, Move, Table, Total};

pub(super) const KIND: Kind =
    Kind { name: "sqlite", open, has_log: true, kills_lose: false, has_entries: false };

/// Statements that are kept prepared.
const STATEMENTS: usize = 16;

/// Bits of a client's own numbers in the history's key.
const NUMBER_BITS: u32 = 40;

struct Store {
    connection: Mutex<Connection>,
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let connection = Connection::open(folder.join("bank.sqlite"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = match terms.durability {
        Durability::Synced => "FULL",
        Durability::Kernel => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    let kib = i64::try_from(terms.cache_bytes / 1024)?;
    // Below zero it is a size and not a number of pages.
    connection.pragma_update(None, "cache_size", -kib)?;
    if terms.put_off {
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    }
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    for table in Table::ALL {
        let columns = "id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, rest BLOB NOT NULL";
        let sql = format!("CREATE TABLE IF NOT EXISTS {} ({columns})", table.name());
        connection.execute(&sql, [])?;
    }
    Ok(Box::new(Store { connection: Mutex::new(connection) }))
}

fn add(table: Table) -> &'static str {
    match table {
        Table::Accounts => "UPDATE accounts SET balance = balance + ?2 WHERE id = ?1",
        Table::Tellers => "UPDATE tellers SET balance = balance + ?2 WHERE id = ?1",
        Table::Branches => "UPDATE branches SET balance = balance + ?2 WHERE id = ?1",
        Table::History => "INSERT INTO history VALUES (?1, ?2, ?3)",
    }
}

impl Store {
    /// Does something in one transaction.
    fn within(&self, work: impl FnOnce(&Connection) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let open = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        work(&open)?;
        Ok(open.commit()?)
    }
}

impl Peer for Store {
    fn fill(&self, table: Table, ids: Range<u64>) -> Result<(), Failure> {
        self.within(|open| {
            let sql = format!("INSERT INTO {} VALUES (?1, 0, ?2)", table.name());
            let mut insert = open.prepare_cached(&sql)?;
            for id in ids {
                insert.execute(params![id as i64, &tpcb::row(table, id)[BALANCE_BYTES..]])?;
            }
            Ok(())
        })
    }

    fn take(&self, table: Table, ids: &[u64]) -> Result<(), Failure> {
        self.within(|open| {
            let sql = format!("DELETE FROM {} WHERE id = ?1", table.name());
            let mut delete = open.prepare_cached(&sql)?;
            for id in ids {
                delete.execute([*id as i64])?;
            }
            Ok(())
        })
    }

    fn head(&self, table: Table) -> Result<Option<u64>, Failure> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let sql = format!("SELECT min(id) FROM {}", table.name());
        let first = connection.query_row(&sql, [], |row| row.get::<_, Option<i64>>(0))?;
        Ok(first.map(|id| id as u64))
    }

    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        Ok(Box::new(self))
    }

    fn total(&self, table: Table) -> Result<Total, Failure> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let sql = format!("SELECT count(*), coalesce(sum(balance), 0) FROM {}", table.name());
        Ok(connection.query_row(&sql, [], |row| {
            Ok(Total { rows: row.get::<_, i64>(0)? as u64, sum: row.get(1)? })
        })?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        let connection = self.connection.into_inner().unwrap_or_else(PoisonError::into_inner);
        connection.close().map_err(|(_, error)| error.into())
    }
}

impl Worker for &Store {
    fn transaction(&mut self, it: &Move) -> Result<(), Failure> {
        let rows = [
            (Table::Accounts, it.account),
            (Table::Tellers, it.teller),
            (Table::Branches, it.branch),
        ];
        self.within(|open| {
            for (table, id) in rows {
                open.prepare_cached(add(table))?.execute(params![id as i64, it.delta])?;
            }
            let id = i64::from(it.client) << NUMBER_BITS | it.number as i64;
            let line = &it.line()[BALANCE_BYTES..];
            open.prepare_cached(add(Table::History))?.execute(params![id, it.delta, line])?;
            Ok(())
        })
    }
}

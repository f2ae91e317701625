//! The bank of TPC-B: its tables, its transaction and its sums.
//!
//! Promise: every store gets the same rows and the same transactions, written once here; a row is
//! 92 bytes below a key of 8, a line of the history 42 below 12. As in the paper, each client stays
//! with a branch of its own, so that no transaction waits for another's locks.
//! Never: knows a store.

use std::ops::{Range, RangeInclusive};

use holdfast_bench_common::random::mixed;

use crate::Failure;
use crate::peers::Peer;

/// Bytes of a row of a branch, a teller or an account: the balance, then what nobody reads.
pub(crate) const ROW_BYTES: usize = 92;

/// Bytes of a line of the history.
pub(crate) const LINE_BYTES: usize = 42;

/// Bytes of the balance, or of the amount moved, with which either begins.
pub(crate) const BALANCE_BYTES: usize = 8;

/// Tellers of a branch.
const TELLERS: u64 = 10;

/// Rows that are loaded in one transaction.
const CHUNK: u64 = 1_000;

/// Most that is moved, either way.
const DELTA_MAX: i64 = 999_999;

/// Where the tables of a bank differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Branches,
    Tellers,
    Accounts,
    History,
}

impl Table {
    /// Those that have a row for each id from 0.
    pub(crate) const ROWS: [Table; 3] = [Table::Branches, Table::Tellers, Table::Accounts];

    /// All.
    pub(crate) const ALL: [Table; 4] =
        [Table::Branches, Table::Tellers, Table::Accounts, Table::History];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Table::Branches => "branches",
            Table::Tellers => "tellers",
            Table::Accounts => "accounts",
            Table::History => "history",
        }
    }
}

/// The id that a row's key tells.
pub(crate) fn id(key: &[u8]) -> Result<u64, Failure> {
    Ok(u64::from_be_bytes(key.try_into()?))
}

/// A row's bytes.
pub(crate) type Row = [u8; ROW_BYTES];

/// How large a bank is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bank {
    pub(crate) branches: u32,
    /// Of each branch.
    pub(crate) accounts: u32,
}

impl Bank {
    /// Rows of a table before the first transaction.
    pub(crate) fn rows(self, table: Table) -> u64 {
        let branches = u64::from(self.branches);
        match table {
            Table::Branches => branches,
            Table::Tellers => branches * TELLERS,
            Table::Accounts => branches * u64::from(self.accounts),
            Table::History => 0,
        }
    }
}

/// One transaction: so much goes to an account through a teller of its branch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) account: u64,
    pub(crate) teller: u64,
    pub(crate) branch: u64,
    pub(crate) delta: i64,
    /// Who asks for it, and how many it asked for before.
    pub(crate) client: u32,
    pub(crate) number: u64,
}

impl Move {
    /// What the history has of it.
    pub(crate) fn line(&self) -> [u8; LINE_BYTES] {
        let mut line = [b'-'; LINE_BYTES];
        let words = [self.delta as u64, self.account, self.teller, self.branch];
        for (place, word) in line.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        line
    }
}

/// Who asks for transactions, one after the other.
pub(crate) struct Client {
    bank: Bank,
    client: u32,
    number: u64,
}

impl Client {
    /// A client of the branch of its number; it goes on where `number` transactions were before.
    pub(crate) fn new(bank: Bank, client: u32, number: u64) -> Client {
        Client { bank, client, number }
    }

    /// The next transaction.
    pub(crate) fn next(&mut self) -> Move {
        let (client, number) = (self.client, self.number);
        self.number += 1;
        let branch = u64::from(client % self.bank.branches);
        let luck = mixed(u64::from(client) << 40 ^ number);
        let accounts = u64::from(self.bank.accounts);
        Move {
            account: branch * accounts + (luck >> 8) % accounts,
            teller: branch * TELLERS + luck % TELLERS,
            branch,
            delta: (mixed(luck) % (2 * DELTA_MAX as u64 + 1)) as i64 - DELTA_MAX,
            client,
            number,
        }
    }
}

/// What a transaction does with a store of keys and values.
pub(crate) trait Rows {
    /// Reads a row that will be written; it is there.
    fn read(&mut self, table: Table, key: &[u8], row: &mut Row) -> Result<(), Failure>;

    /// Writes a row.
    fn write(&mut self, table: Table, key: &[u8], row: &[u8]) -> Result<(), Failure>;

    /// Adds to a row's balance, and returns what that is then.
    fn add(&mut self, table: Table, key: &[u8], delta: i64) -> Result<i64, Failure> {
        let mut row = [0; ROW_BYTES];
        self.read(table, key, &mut row)?;
        let balance = add(&mut row, delta)?;
        self.write(table, key, &row)?;
        Ok(balance)
    }
}

/// Does one transaction, but for its end. Returns what the account has then.
pub(crate) fn apply(rows: &mut impl Rows, it: &Move) -> Result<i64, Failure> {
    let account = rows.add(Table::Accounts, &key(it.account), it.delta)?;
    rows.add(Table::Tellers, &key(it.teller), it.delta)?;
    rows.add(Table::Branches, &key(it.branch), it.delta)?;
    rows.write(Table::History, &line_key(it.client, it.number), &it.line())?;
    Ok(account)
}

/// Adds to the balance of a row, and returns it.
pub(crate) fn add(row: &mut [u8], delta: i64) -> Result<i64, Failure> {
    let balance = balance(row)? + delta;
    row[..BALANCE_BYTES].copy_from_slice(&balance.to_le_bytes());
    Ok(balance)
}

/// Where a table has a row.
pub(crate) fn key(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

/// Where the history has a line.
pub(crate) fn line_key(client: u32, number: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&client.to_be_bytes());
    key[4..].copy_from_slice(&number.to_be_bytes());
    key
}

/// A row as it is loaded.
pub(crate) fn row(table: Table, id: u64) -> Row {
    let mut row = [0; ROW_BYTES];
    for (place, number) in row[BALANCE_BYTES..].chunks_mut(8).zip(0..) {
        let word = mixed(id << 8 | (table as u64) << 4 | number).to_le_bytes();
        place.copy_from_slice(&word[..place.len()]);
    }
    row
}

/// What a row or a line begins with.
pub(crate) fn balance(row: &[u8]) -> Result<i64, Failure> {
    let (balance, _) = row.split_first_chunk().ok_or("a row that is too short")?;
    Ok(i64::from_le_bytes(*balance))
}

/// What a whole table comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) rows: u64,
    pub(crate) sum: i64,
}

impl Total {
    /// Adds a row or a line.
    pub(crate) fn add(&mut self, row: &[u8]) -> Result<(), Failure> {
        self.rows += 1;
        self.sum += balance(row)?;
        Ok(())
    }
}

/// Puts the rows of a bank into an empty store.
pub(crate) fn load(peer: &dyn Peer, bank: Bank) -> Result<(), Failure> {
    for table in Table::ROWS {
        let rows = bank.rows(table);
        for begin in (0..rows).step_by(CHUNK as usize) {
            peer.fill(table, begin..rows.min(begin + CHUNK))?;
        }
    }
    Ok(())
}

/// The ids of a chunk, each with its key and its row.
pub(crate) fn chunk(table: Table, ids: Range<u64>) -> impl Iterator<Item = ([u8; 8], Row)> {
    ids.map(move |id| (key(id), row(table, id)))
}

/// Refuses a store that has not all rows, other than so many lines, or sums that differ.
pub(crate) fn check(
    peer: &dyn Peer,
    bank: Bank,
    lines: RangeInclusive<u64>,
) -> Result<(), Failure> {
    let history = peer.total(Table::History)?;
    if !lines.contains(&history.rows) {
        return Err(format!("{} lines of history instead of {lines:?}", history.rows).into());
    }
    for table in Table::ROWS {
        let (found, rows) = (peer.total(table)?, bank.rows(table));
        let wanted = Total { rows, sum: history.sum };
        if found != wanted {
            return Err(format!("{}: {found:?} instead of {wanted:?}", table.name()).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

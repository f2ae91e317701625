//! A bank: a transfer changes two accounts or none, and a checkpoint keeps the replay short.
//! `ledger DIRECTORY FROM TO CENTS` makes a transfer.
//!
//! Promise: the sum over all accounts is zero after any crash; a confirmed transfer counts once.
//! Never: replays more than the transfers since the last statement.

use holdfast_wal::{Log, Lsn, Options, Record, format::MessagePack};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::{collections::BTreeMap, error::Error};

type Outcome<T> = Result<T, Box<dyn Error>>;
const BOOKINGS_A_STATEMENT: usize = 32;

/// One side of a transfer: account and cents. Both sides are one atomic set.
#[derive(Serialize, Deserialize)]
pub(crate) struct Booking(u32, i64);

impl Record for Booking {
    const NAME: &'static str = "example.booking";
}

/// All balances, and how many bookings the last statement does not have.
pub(crate) struct Bank {
    log: Log<Booking, MessagePack>,
    directory: PathBuf,
    pub(crate) balances: BTreeMap<u32, i64>,
    pub(crate) unstated: usize,
}

impl Bank {
    /// Reads the statement, which says how far in the log it goes, and replays what is newer.
    pub(crate) fn open(directory: &Path) -> Outcome<Bank> {
        let (log, _) = Log::open_or_create(directory.join("log"), &Options::default())?;
        let statement = directory.join("statement");
        let (reached, balances) = match fs::exists(&statement)? {
            true => serde_json::from_slice(&fs::read(statement)?)?,
            false => (0, BTreeMap::new()),
        };
        let mut bank = Bank { log, directory: directory.to_owned(), balances, unstated: 0 };
        for entry in bank.log.iter_from(Lsn(reached)) {
            bank.book(entry?.record);
        }
        Ok(bank)
    }

    fn book(&mut self, Booking(account, cents): Booking) {
        *self.balances.entry(account).or_insert(0) += cents;
        self.unstated += 1;
    }

    /// Moves cents from one account to another. When this returns, that is durable.
    pub(crate) fn transfer(&mut self, from: u32, to: u32, cents: i64) -> Outcome<()> {
        let both = [Booking(from, -cents), Booking(to, cents)];
        let ticket = self.log.append_all(&both)?;
        ticket.wait()?;
        let end = ticket.end();
        both.into_iter().for_each(|booking| self.book(booking));
        if self.unstated >= BOOKINGS_A_STATEMENT { self.state(end) } else { Ok(()) }
    }

    /// Writes the balances down, durably, and only then forgets the bookings.
    fn state(&mut self, reached: Lsn) -> Outcome<()> {
        let new = self.directory.join("statement.new");
        fs::write(&new, serde_json::to_vec(&(reached.get(), &self.balances))?)?;
        File::open(&new)?.sync_all()?;
        fs::rename(new, self.directory.join("statement"))?;
        File::open(&self.directory)?.sync_all()?;
        self.unstated = 0;
        Ok(self.log.checkpoint(reached)?)
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, from, to, cents] = &arguments[..] else { return Err("see above".into()) };
    let mut bank = Bank::open(Path::new(directory))?;
    bank.transfer(from.parse()?, to.parse()?, cents.parse()?)
}

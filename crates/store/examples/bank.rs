//! A bank: accounts, and a ledger of what was moved between them, by many threads at once.
//! `bank DIRECTORY FROM TO CENTS` makes a transfer, and prints what FROM has sent.
//!
//! Promise: money is neither made nor lost, whoever is killed; a confirmed transfer is on the disk.
//! Never: gives up because of a deadlock.

use holdfast_store::{Config, Direction, Durability, Store, Transaction, TransactionError, Tree};
use std::io::{Write, stdout};
use std::{error::Error, path::Path};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;
/// What everybody has who was never heard of.
pub(crate) const GIFT_CENTS: i64 = 1000;

/// Cents, and how many transfers went out: 16 bytes.
#[derive(Clone, Copy)]
struct Account(i64, u64);

pub(crate) struct Bank {
    store: Store,
    accounts: Tree,
    /// Keys are an account and a number, so the transfers of an account are neighbours.
    ledger: Tree,
}

impl Bank {
    pub(crate) fn open(directory: &Path) -> Outcome<Bank> {
        let (store, _) = Store::open(directory, &Config::default())?;
        let (accounts, ledger) = (store.tree("accounts")?, store.tree("ledger")?);
        Ok(Bank { store, accounts, ledger })
    }

    /// Moves cents, if there are so many. When this returns true, that is durable.
    pub(crate) fn transfer(&self, from: u32, to: u32, cents: i64) -> Outcome<bool> {
        loop {
            let mut transaction = self.store.begin();
            match self.book(&mut transaction, from, to, cents) {
                Ok(true) => return Ok(transaction.commit(Durability::Disk).map(|_| true)?),
                // Dropped, a transaction has never been.
                Ok(false) => return Ok(false),
                // Another one goes first; this one begins again.
                Err(TransactionError::Deadlock(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn book(
        &self,
        transaction: &mut Transaction<'_>,
        from: u32,
        to: u32,
        cents: i64,
    ) -> Result<bool, TransactionError> {
        let Account(has, number) = self.account(transaction, from)?;
        if has < cents || from == to {
            return Ok(false);
        }
        self.set(transaction, from, Account(has - cents, number + 1))?;
        let Account(has, sent) = self.account(transaction, to)?;
        self.set(transaction, to, Account(has + cents, sent))?;
        let line = format!("{cents} cents to {to}");
        transaction.insert(&self.ledger, &line_key(from, number), line.as_bytes())
    }

    /// An account that nobody else reads to change it until the transaction ends.
    fn account(&self, of: &mut Transaction<'_>, who: u32) -> Result<Account, TransactionError> {
        let found = of.get_for_update(&self.accounts, &who.to_be_bytes())?;
        Ok(found.map_or(Account(GIFT_CENTS, 0), |bytes| parse(&bytes)))
    }

    fn set(&self, of: &mut Transaction<'_>, who: u32, is: Account) -> Result<(), TransactionError> {
        let value = [is.0.to_be_bytes(), is.1.to_be_bytes()].concat();
        of.put(&self.accounts, &who.to_be_bytes(), &value)
    }

    /// What an account has sent.
    pub(crate) fn statement(&self, who: u32) -> Outcome<Vec<String>> {
        let mut transaction = self.store.begin();
        let [first, last] = [0, u64::MAX].map(|number| line_key(who, number));
        let lines = transaction.scan(&self.ledger, first..=last, Direction::Up);
        lines.map(|line| Ok(String::from_utf8_lossy(&line?.1).into_owned())).collect()
    }

    /// All accounts, and how many cents they have, as of one moment.
    pub(crate) fn sum(&self) -> Outcome<(u64, i64)> {
        let mut transaction = self.store.begin();
        let mut all = transaction.scan::<&[u8]>(&self.accounts, .., Direction::Up);
        all.try_fold((0, 0), |(count, cents), found| Ok((count + 1, cents + parse(&found?.1).0)))
    }
}

fn line_key(who: u32, number: u64) -> Vec<u8> {
    [&who.to_be_bytes()[..], &number.to_be_bytes()].concat()
}

/// The account in a value that [`Bank::set`] wrote.
fn parse(value: &[u8]) -> Account {
    let half = |at: usize| value[at..at + 8].try_into().expect("eight bytes are eight bytes");
    Account(i64::from_be_bytes(half(0)), u64::from_be_bytes(half(8)))
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, from, to, cents] = &arguments[..] else { return Err("see above".into()) };
    let bank = Bank::open(Path::new(directory))?;
    let done = bank.transfer(from.parse()?, to.parse()?, cents.parse()?)?;
    let (done, sent) = (if done { "done" } else { "refused" }, bank.statement(from.parse()?)?);
    let (accounts, cents) = bank.sum()?;
    writeln!(stdout(), "{done}; sent so far: {sent:#?}; {accounts} accounts have {cents} cents")?;
    Ok(bank.store.close()?)
}

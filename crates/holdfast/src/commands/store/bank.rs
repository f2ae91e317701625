//! A bank that is measured.
//!
//! Promise: a transfer is one transaction; when the bank is closed accounts, tellers and branches
//! have the balances that all transfers come to, or it says that they have not.
//! Never: has two threads at one branch.

use holdfast_store::{Config, Direction, Durability, Store, Transaction, Tree};
use std::path::Path;
use std::time::{Duration, Instant};

/// Branches of the bank.
pub(super) const BRANCHES: usize = 8;
const TELLERS_A_BRANCH: u64 = 10;
const ACCOUNTS_A_BRANCH: u64 = 10_000;

/// Bytes of a row with a balance, and of one of history.
const ROW_BYTES: usize = 92;
const HISTORY_BYTES: usize = 42;

/// What goes wrong with a measurement ends it.
pub(super) type Measured<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A bank in a store.
pub(super) struct Bank {
    store: Store,
    accounts: Tree,
    tellers: Tree,
    branches: Tree,
    history: Tree,
    /// What each branch has done.
    done: [Done; BRANCHES],
}

/// What was done at a branch.
#[derive(Clone, Copy, Default)]
struct Done {
    transfers: u64,
    balance: i64,
}

impl Bank {
    /// A bank where every balance is zero.
    pub(super) fn fill(directory: &Path) -> Measured<Bank> {
        let (store, _) = Store::open(&directory.join("store"), &Config::default())?;
        let trees = ["accounts", "tellers", "branches", "history"].map(|name| store.tree(name));
        let [accounts, tellers, branches, history] = trees;
        let (accounts, tellers, branches) = (accounts?, tellers?, branches?);
        let bank = Bank {
            store,
            accounts,
            tellers,
            branches,
            history: history?,
            done: Default::default(),
        };
        for branch in 0..BRANCHES as u64 {
            bank.insert(&bank.branches, branch, 1)?;
            bank.insert(&bank.tellers, branch, TELLERS_A_BRANCH)?;
            bank.insert(&bank.accounts, branch, ACCOUNTS_A_BRANCH)?;
        }
        bank.store.sync()?;
        Ok(bank)
    }

    /// Inserts the rows of a branch into one tree.
    fn insert(&self, tree: &Tree, branch: u64, rows: u64) -> Measured<()> {
        let mut transaction = self.store.begin();
        for row in branch * rows..(branch + 1) * rows {
            transaction.insert(tree, &row.to_be_bytes(), &[0; ROW_BYTES])?;
        }
        transaction.commit(Durability::Memory)?;
        Ok(())
    }

    /// Makes transfers with so many threads for so long. Returns how long each took, in ns.
    pub(super) fn transfer(
        &mut self,
        threads: usize,
        durability: Durability,
        time: Duration,
    ) -> Measured<Vec<u64>> {
        let (bank, began) = (&*self, Instant::now());
        let ended = std::thread::scope(|scope| {
            let run = |branch| scope.spawn(move || bank.run(branch, durability, began, time));
            let running: Vec<_> = (0..threads).map(run).collect();
            let ended =
                running.into_iter().map(|thread| thread.join().map_err(|_| "a thread died")?);
            ended.collect::<Measured<Vec<_>>>()
        })?;
        let mut took_ns = Vec::new();
        for (branch, (done, took)) in ended.into_iter().enumerate() {
            self.done[branch] = done;
            took_ns.extend(took);
        }
        Ok(took_ns)
    }

    /// Makes transfers at one branch.
    fn run(
        &self,
        branch: usize,
        durability: Durability,
        began: Instant,
        time: Duration,
    ) -> Measured<(Done, Vec<u64>)> {
        let (mut done, mut took_ns) = (self.done[branch], Vec::new());
        loop {
            let asked = Instant::now();
            let cents = self.transfer_once(branch as u64, done.transfers, durability)?;
            took_ns.push(u64::try_from(asked.elapsed().as_nanos())?);
            done = Done { transfers: done.transfers + 1, balance: done.balance + cents };
            // Behind the first one: a busy machine may begin late.
            if began.elapsed() >= time {
                return Ok((done, took_ns));
            }
        }
    }

    /// One transfer. Returns how many cents it moved.
    fn transfer_once(&self, branch: u64, number: u64, durability: Durability) -> Measured<i64> {
        let any = scattered(number);
        let cents = (any % 1999) as i64 - 999;
        let (teller, account) = (any % TELLERS_A_BRANCH, any % ACCOUNTS_A_BRANCH);
        let mut transaction = self.store.begin();
        for (tree, row) in [
            (&self.accounts, branch * ACCOUNTS_A_BRANCH + account),
            (&self.tellers, branch * TELLERS_A_BRANCH + teller),
            (&self.branches, branch),
        ] {
            add(&mut transaction, tree, row, cents)?;
        }
        let line = [branch.to_be_bytes(), number.to_be_bytes()].concat();
        transaction.insert(&self.history, &line, &[0; HISTORY_BYTES])?;
        transaction.commit(durability)?;
        Ok(cents)
    }

    /// Adds everything up, and closes the store.
    pub(super) fn close(self) -> Measured<()> {
        let balance: i64 = self.done.iter().map(|done| done.balance).sum();
        for tree in [&self.accounts, &self.tellers, &self.branches] {
            let found = self.sum(tree)?;
            if found != balance {
                return Err(format!("{balance} cents were moved, and {found} are there").into());
            }
        }
        Ok(self.store.close()?)
    }

    fn sum(&self, tree: &Tree) -> Measured<i64> {
        let mut sum = 0;
        let mut transaction = self.store.begin();
        for found in transaction.scan::<Vec<u8>>(tree, .., Direction::Up) {
            sum += balance(&found?.1);
        }
        Ok(sum)
    }
}

/// A number that looks drawn.
fn scattered(number: u64) -> u64 {
    number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

/// Adds to the balance of a row.
fn add(transaction: &mut Transaction<'_>, tree: &Tree, row: u64, cents: i64) -> Measured<()> {
    let is_there = transaction.update(tree, &row.to_be_bytes(), |value| {
        let sum = balance(value) + cents;
        value[..8].copy_from_slice(&sum.to_be_bytes());
    })?;
    if is_there { Ok(()) } else { Err("a row is gone".into()) }
}

/// The balance in a row that this bank has written.
fn balance(value: &[u8]) -> i64 {
    value.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

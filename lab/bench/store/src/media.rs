//! The page file is lost while transactions run.
//!
//! Promise: the file is emptied under the store, which is told to take a new one; the clock runs
//! from the loss until the next transaction is acknowledged, and on until as much is done as
//! before. Then every sum agrees. The pool holds a part of the database.
//! Never: stops a client.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_bench_common::place::Place;
use holdfast_store::Config;

use crate::Failure;
use crate::drive::{self, Hand};
use crate::effort::Effort;
use crate::peers::Durability;
use crate::peers::holdfast::{self, Bank};
use crate::rates::{Loaded, terms};
use crate::restart::recovered_ms;
use crate::tpcb::{self, Client, ROW_BYTES, Table};

/// Clients that are not stopped. One more asks for the first transaction after the loss.
const CLIENTS: u32 = 2;

/// Of the rows' bytes, how many the pool holds: so few that most transactions need the file.
const POOL_SHARE: u64 = 4;

/// So many bytes of records wait until the page file has them: few, so that pages are written all
/// the time.
const CLEAN_EVERY_BYTES: u64 = 4 << 20;

/// Where a store has its pages.
pub(crate) const PAGES: &str = "pages";

/// What a loss came to.
pub(crate) struct Outcome {
    pub(crate) first_ms: f64,
    pub(crate) recovered_ms: f64,
}

/// A store that was closed with all its pages in its file, and whose pool holds a part of them.
pub(crate) fn spread(loaded: &Loaded, place: &Place) -> Result<Bank, Failure> {
    let told = holdfast::config(place.path(), &terms(Durability::Synced));
    let rows: u64 = Table::ROWS.into_iter().map(|table| loaded.bank.rows(table)).sum();
    let pool_bytes = rows * ROW_BYTES as u64 / POOL_SHARE;
    let config = Config { pool_bytes, clean_every_bytes: CLEAN_EVERY_BYTES, ..told };
    Bank::open(place.path(), &config, Durability::Synced)
}

/// Loses the page file of a copy.
pub(crate) fn measure(loaded: &Loaded, effort: &Effort, whole: &Place) -> Result<Outcome, Failure> {
    let place = whole.copy("media", loaded.place.path())?;
    let bank = spread(loaded, &place)?;
    let mut hands = Hand::all(loaded.bank, CLIENTS);
    drive::all(&bank, &mut hands, effort.warm_up)?;
    let mut other = Hand::new(Client::new(loaded.bank, CLIENTS, 0));
    let time = effort.around_kill;
    let (ends, lost, first) = std::thread::scope(|scope| {
        let began = Instant::now();
        let clients = scope.spawn(|| drive::ends(&bank, &mut hands, 2 * time));
        std::thread::sleep(time);
        let lost = began.elapsed();
        let first = lose(&bank, place.path(), &mut other);
        let ends = clients.join().map_err(|_| "a thread died")?;
        Ok::<_, Failure>((ends?, lost, first?))
    })?;
    let done = hands.iter().chain([&other]).map(Hand::done).sum();
    tpcb::check(&bank, loaded.bank, done..=done)?;
    bank.store.close()?;

    let before = ends.iter().filter(|end| **end < lost).count() as f64 / lost.as_secs_f64();
    let after: Vec<Duration> = ends.iter().filter_map(|end| end.checked_sub(lost)).collect();
    Ok(Outcome {
        first_ms: first.as_secs_f64() * 1e3,
        recovered_ms: recovered_ms(&after, before, time),
    })
}

/// Empties the file and asks for a transaction.
fn lose(bank: &Bank, folder: &Path, other: &mut Hand) -> Result<Duration, Failure> {
    let lost = Instant::now();
    File::options().write(true).open(folder.join(PAGES))?.set_len(0)?;
    bank.store.replace_pages()?;
    other.transact(&mut &*bank)?;
    Ok(lost.elapsed())
}

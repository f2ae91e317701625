//! Pages that are damaged on their device while transactions need them.
//!
//! Promise: every fault is written behind the store's back into a page that it has in its file;
//! each account that a transaction reads is compared with what its client last wrote there; at the
//! end, and once more after the store was closed and opened, every sum agrees.
//! Never: damages what is not in the page file.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdfast_bench_common::place::Place;
use holdfast_bench_common::random::mixed;
use holdfast_figures::percentile;

use crate::Failure;
use crate::effort::Effort;
use crate::media::{PAGES, spread};
use crate::peers::Peer;
use crate::peers::holdfast::{Bank, Read};
use crate::rates::Loaded;
use crate::tpcb::{self, BALANCE_BYTES, Client, Move, Table};

/// Bytes of a page.
const PAGE_BYTES: usize = 8192;

/// Clients that need pages.
const CLIENTS: u32 = 2;

/// Time between two faults, so that few are there at once.
const BETWEEN: Duration = Duration::from_millis(2);

/// What is done to a page.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// One bit is another.
    Flip,
    /// It is nothing.
    Zero,
    /// It is as it was once.
    Stale,
    /// It is another page.
    Misdirected,
    /// Its first half is as it was once.
    Torn,
}

const FAULTS: [Fault; 5] =
    [Fault::Flip, Fault::Zero, Fault::Stale, Fault::Misdirected, Fault::Torn];

/// What all faults came to.
pub(crate) struct Outcome {
    pub(crate) injected: u64,
    /// Met by transactions or by the cleaner; one that was written over before is met by nobody.
    pub(crate) met: u64,
    /// Of transactions within which a fault was met.
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

/// A client that knows what it wrote.
struct Checking {
    client: Client,
    balances: HashMap<u64, i64>,
    done: u64,
    /// How long those took within which a fault was met.
    times_ns: Vec<u64>,
}

/// Damages pages of a copy.
pub(crate) fn measure(loaded: &Loaded, effort: &Effort, whole: &Place) -> Result<Outcome, Failure> {
    let place = whole.copy("repair", loaded.place.path())?;
    let bank = spread(loaded, &place)?;
    let mut clients: Vec<Checking> =
        (0..CLIENTS).map(|client| Checking::new(Client::new(loaded.bank, client, 0))).collect();
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let run = |client| scope.spawn(|| Checking::run(client, &bank, stop));
        let threads: Vec<_> = clients.iter_mut().map(run).collect();
        let injected = inject(&place.path().join(PAGES), effort.faults);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread died")?)?;
        injected
    })?;
    let done = clients.iter().map(|client| client.done).sum();
    tpcb::check(&bank, loaded.bank, done..=done)?;
    let met = bank.faults();
    Box::new(bank).close()?;
    let bank = spread(loaded, &place)?;
    tpcb::check(&bank, loaded.bank, done..=done)?;
    bank.store.close()?;

    let mut times: Vec<u64> = clients.into_iter().flat_map(|client| client.times_ns).collect();
    times.sort_unstable();
    let ms = |percent| percentile(&times, percent) as f64 / 1e6;
    Ok(Outcome { injected: effort.faults, met, p99_ms: ms(99), max_ms: ms(100) })
}

impl Checking {
    fn new(client: Client) -> Checking {
        Checking { client, balances: HashMap::new(), done: 0, times_ns: Vec::new() }
    }

    fn run(&mut self, bank: &Bank, stop: &AtomicBool) -> Result<(), Failure> {
        while !stop.load(Ordering::Relaxed) {
            let it = self.client.next();
            let (before, began) = (bank.faults(), Instant::now());
            let read = bank.transact(&it)?;
            if bank.faults() > before {
                self.times_ns.push(began.elapsed().as_nanos() as u64);
            }
            self.done += 1;
            self.check(&it, &read)?;
        }
        Ok(())
    }

    /// Refuses an account that is not as it was left.
    fn check(&mut self, it: &Move, read: &Read) -> Result<(), Failure> {
        let balance = self.balances.entry(it.account).or_default();
        *balance += it.delta;
        let is_served = read.account[BALANCE_BYTES..]
            == tpcb::row(Table::Accounts, it.account)[BALANCE_BYTES..]
            && tpcb::balance(&read.account)? == *balance;
        if !is_served {
            return Err(format!("account {} was served damaged", it.account).into());
        }
        Ok(())
    }
}

/// Damages so many pages.
fn inject(path: &Path, faults: u64) -> Result<(), Failure> {
    let file = File::options().read(true).write(true).open(path)?;
    let pages = file.metadata()?.len() / PAGE_BYTES as u64;
    let mut once = vec![0; (pages * PAGE_BYTES as u64) as usize];
    file.read_exact_at(&mut once, 0)?;
    let old = |page: u64| &once[page as usize * PAGE_BYTES..][..PAGE_BYTES];
    for (number, fault) in (0..faults).zip(FAULTS.into_iter().cycle()) {
        // The first page of a file is nobody's.
        let page = 1 + mixed(number) % (pages - 1);
        let mut bytes = vec![0; PAGE_BYTES];
        file.read_exact_at(&mut bytes, page * PAGE_BYTES as u64)?;
        damage(&mut bytes, fault, old(page), old(1 + page % (pages - 1)), mixed(!number));
        file.write_all_at(&bytes, page * PAGE_BYTES as u64)?;
        std::thread::sleep(BETWEEN);
    }
    Ok(())
}

/// Makes a page what it should not be.
fn damage(bytes: &mut [u8], fault: Fault, old: &[u8], other: &[u8], luck: u64) {
    let before = bytes.to_vec();
    match fault {
        Fault::Flip => {}
        Fault::Zero => bytes.fill(0),
        Fault::Stale => bytes.copy_from_slice(old),
        Fault::Misdirected => bytes.copy_from_slice(other),
        Fault::Torn => bytes[..PAGE_BYTES / 2].copy_from_slice(&old[..PAGE_BYTES / 2]),
    }
    // What has not changed meanwhile is no fault yet.
    if bytes == before {
        bytes[luck as usize % PAGE_BYTES] ^= 1 << (luck >> 32 & 7);
    }
}

#[cfg(test)]
mod tests;

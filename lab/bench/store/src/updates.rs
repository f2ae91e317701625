//! Updates of accounts in a table that is larger than the pool, in stores that differ in one way.
//!
//! Promise: all ways take turns in short slices within one process, in stores that stay open; what
//! they write to the page file and to the archive is counted, between slices too, and the sum of a
//! table agrees at the end. Commits are in the ring, so that no device's syncs hide the rest.
//! Never: compares anything but configurations of this store.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use holdfast_bench_common::clock::Clock;
use holdfast_bench_common::place::Place;
use holdfast_bench_common::random::mixed;
use holdfast_store::{CleaningOrder, Compression, Config, Eviction, Statistics};

use crate::Failure;
use crate::choice::Part;
use crate::effort::Effort;
use crate::peers::holdfast::{self, Bank};
use crate::peers::{Durability, Peer};
use crate::rates::{Loaded, terms};
use crate::tpcb::{ROW_BYTES, Table};

/// A way to be configured.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    change: fn(&mut Config),
}

/// Ways that are compared with one another, and under which loads.
pub(crate) struct Group {
    pub(crate) part: Part,
    pub(crate) name: &'static str,
    pub(crate) ways: &'static [Way],
    pub(crate) loads: &'static [Load],
}

/// A name, and to which power a number from 0 to 1 is raised that says which account.
pub(crate) type Load = (&'static str, f64);

/// All that is compared.
pub(crate) const GROUPS: [Group; 3] = [
    Group { part: Part::Orders, name: "order", ways: &ORDERS, loads: &LOADS },
    Group { part: Part::Eviction, name: "eviction", ways: &EVICTIONS, loads: &LOADS },
    Group { part: Part::Compression, name: "compression", ways: &COMPRESSIONS, loads: &LOADS },
];

/// Who is written and who waits.
const ORDERS: [Way; 5] = [
    Way { name: "every_page", change: |it| it.cleaning = CleaningOrder::EveryPage },
    Way { name: "oldest_first", change: |it| it.cleaning = CleaningOrder::OldestFirst },
    Way { name: "hottest_last", change: |it| it.cleaning = CleaningOrder::HottestLast },
    Way { name: "most_changes", change: |it| it.cleaning = CleaningOrder::MostChanges },
    Way { name: "old_segments", change: |it| it.cleaning = CleaningOrder::OldSegments },
];

/// Who leaves the pool.
const EVICTIONS: [Way; 2] = [
    Way { name: "unused", change: |it| it.eviction = Eviction::Unused },
    Way { name: "clean_first", change: |it| it.eviction = Eviction::CleanFirst },
];

/// How the archive is compressed.
const COMPRESSIONS: [Way; 2] = [
    Way { name: "none", change: |it| it.compression = Compression::None },
    Way { name: "lz4", change: |it| it.compression = Compression::Lz4 },
];

/// With the first one four fifths of the updates are of one fifth of the accounts, and four fifths
/// of those of one fifth of that.
const LOADS: [Load; 2] = [("skewed", 7.2), ("uniform", 1.0)];

/// Who asks for transactions.
const CLIENTS: u64 = 2;
/// Accounts of a transaction.
const ACCOUNTS: u64 = 10;
/// Of the rows' bytes, how many the pool holds.
const POOL_SHARE: u64 = 4;
/// So many bytes of records wait until the page file has them.
const CLEAN_EVERY_BYTES: u64 = 4 << 20;
const MIB: f64 = 1_048_576.0;

/// What a slice of a way came to.
pub(crate) struct Slice {
    /// A place among the ways.
    pub(crate) way: usize,
    pub(crate) per_s: f64,
    pub(crate) cpu_us: f64,
    /// Pages that were brought into the pool, a transaction.
    pub(crate) brought: f64,
    /// Records that the page file lacks at the end.
    pub(crate) behind_mib: f64,
    /// Log that a restart would read at the end.
    pub(crate) restart_mib: f64,
}

/// What all slices came to.
pub(crate) struct Outcome {
    pub(crate) slices: Vec<Slice>,
    /// What all slices of each way came to together.
    pub(crate) wholes: Vec<Whole>,
}

/// What a transaction came to, with what was done for it between slices.
pub(crate) struct Whole {
    /// Pages that were written to the page file.
    pub(crate) written: f64,
    pub(crate) archived_bytes: f64,
}

/// A store that is configured in a way.
struct Subject {
    bank: Bank,
    place: Place,
    /// Transactions that were done.
    done: u64,
    began_with: Statistics,
}

/// Measures these ways under a load.
pub(crate) fn measure(
    (loaded, whole): (&Loaded, &Place),
    effort: &Effort,
    ways: &[Way],
    (load, power): Load,
) -> Result<Outcome, Failure> {
    let open = |way: &Way| Subject::open(loaded, whole, load, way);
    let mut subjects = ways.iter().map(open).collect::<Result<Vec<_>, Failure>>()?;
    let accounts = loaded.bank.rows(Table::Accounts);
    let mut slices = Vec::new();
    for round in 0..=effort.flat_rounds {
        for step in 0..ways.len() {
            let way = (round + step) % ways.len();
            let slice = subjects[way].slice(way, accounts, power, effort.cleaning_slice)?;
            // In the first round pools fill.
            slices.extend((round > 0).then_some(slice));
        }
    }
    let wholes = subjects.iter().map(Subject::whole).collect();
    subjects.into_iter().try_for_each(Subject::end)?;
    Ok(Outcome { slices, wholes })
}

impl Subject {
    fn open(loaded: &Loaded, whole: &Place, load: &str, way: &Way) -> Result<Subject, Failure> {
        let place = whole.copy(&format!("updates-{load}-{}", way.name), loaded.place.path())?;
        let mut config = holdfast::config(place.path(), &terms(Durability::Kernel));
        let rows: u64 = Table::ROWS.into_iter().map(|table| loaded.bank.rows(table)).sum();
        config.pool_bytes = rows * ROW_BYTES as u64 / POOL_SHARE;
        config.clean_every_bytes = CLEAN_EVERY_BYTES;
        (way.change)(&mut config);
        let bank = Bank::open(place.path(), &config, Durability::Kernel)?;
        let began_with = bank.store.statistics();
        Ok(Subject { bank, place, done: 0, began_with })
    }

    fn slice(
        &mut self,
        way: usize,
        accounts: u64,
        power: f64,
        time: Duration,
    ) -> Result<Slice, Failure> {
        let (before, clock) = (self.bank.store.statistics(), Clock::start());
        let count = self.run(accounts, power, time)?;
        let (wall_s, cpu_us) = (clock.wall_s(), clock.process_us());
        let after = self.bank.store.statistics();
        let brought = after.pool.misses - before.pool.misses;
        Ok(Slice {
            way,
            per_s: count as f64 / wall_s,
            cpu_us: cpu_us / count as f64,
            brought: brought as f64 / count as f64,
            behind_mib: after.uncleaned_bytes as f64 / MIB,
            restart_mib: after.unarchived_log_bytes as f64 / MIB,
        })
    }

    /// Updates for so long. Returns how many transactions that were.
    fn run(&mut self, accounts: u64, power: f64, time: Duration) -> Result<u64, Failure> {
        let (bank, begun, start) = (&self.bank, self.done, &Barrier::new(CLIENTS as usize));
        let client = |client: u64| {
            start.wait();
            let (began, mut done) = (Instant::now(), 0);
            while began.elapsed() < time {
                let seed = mixed(begun + done).wrapping_add(client);
                bank.bump(&drawn(seed, accounts, power))?;
                done += 1;
            }
            Ok(done)
        };
        let counts = std::thread::scope(|scope| {
            let begin = |number| scope.spawn(move || client(number));
            let threads: Vec<_> = (0..CLIENTS).map(begin).collect();
            let join = |it: std::thread::ScopedJoinHandle<'_, Result<u64, Failure>>| {
                it.join().map_err(|_| "a thread died")?
            };
            threads.into_iter().map(join).collect::<Result<Vec<u64>, Failure>>()
        })?;
        let count = counts.iter().sum();
        self.done += count;
        Ok(count)
    }

    /// What a transaction came to so far.
    fn whole(&self) -> Whole {
        let (now, began) = (self.bank.store.statistics(), &self.began_with);
        let each = |now: u64, began: u64| now.saturating_sub(began) as f64 / self.done as f64;
        Whole {
            written: each(now.written_pages, began.written_pages),
            archived_bytes: each(now.archive_bytes, began.archive_bytes),
        }
    }

    fn end(self) -> Result<(), Failure> {
        let (found, wanted) = (self.bank.total(Table::Accounts)?.sum, self.done * ACCOUNTS);
        if found != wanted as i64 {
            return Err(format!("accounts have {found} instead of {wanted}").into());
        }
        self.bank.store.close()?;
        drop(self.place);
        Ok(())
    }
}

/// Some accounts, in order, each once.
fn drawn(seed: u64, accounts: u64, power: f64) -> Vec<u64> {
    let share = |number| (mixed(seed ^ mixed(number)) >> 11) as f64 / (1_u64 << 53) as f64;
    let one = |number| (accounts as f64 * share(number).powf(power)) as u64 % accounts;
    let mut drawn: Vec<u64> = (0..ACCOUNTS).map(one).collect();
    drawn.sort_unstable();
    drawn.dedup();
    // Who was drawn twice has a neighbour that is drawn as well.
    let mut next = 0;
    while (drawn.len() as u64) < ACCOUNTS {
        if let Err(at) = drawn.binary_search(&next) {
            drawn.insert(at, next);
        }
        next += 1;
    }
    drawn
}

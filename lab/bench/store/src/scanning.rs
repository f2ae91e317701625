//! How much two writers lose while somebody reads a whole table again and again.
//!
//! Promise: all ways take turns within one process, in one store that stays open; beside the scans
//! stands a thread that uses a processor and nothing else, so that it is known what of the loss is
//! the processor's. A scan that missed a row ends the run.
//! Never: begins a scan behind the end of its slice, or cuts one short.

use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_bench_common::place::Place;
use holdfast_store::{Direction, Store, Tree};

use crate::Failure;
use crate::effort::Effort;
use crate::peers::Durability;
use crate::peers::holdfast::Bank;
use crate::rates::Loaded;
use crate::subject::{Rate, Subject};
use crate::tpcb::{Table, Total};

/// The table that is read: every transaction changes a row of it.
const TABLE: Table = Table::Accounts;

/// Who is beside the writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    Nobody,
    /// Somebody who uses a processor.
    Spinner,
    /// Somebody who reads the table by one snapshot after the other.
    Snapshots,
    /// Somebody who reads it in one transaction after the other, which lock what they read.
    Locks,
}

/// Ways to have somebody beside the writers, and their names.
pub(crate) const WAYS: [(&str, Beside); 4] = [
    ("nobody", Beside::Nobody),
    ("spinner", Beside::Spinner),
    ("snapshots", Beside::Snapshots),
    ("locks", Beside::Locks),
];

/// What one slice came to.
pub(crate) struct Slice {
    /// A place in [`WAYS`].
    pub(crate) way: usize,
    pub(crate) rate: Rate,
    /// Scans that ended, in a second.
    pub(crate) scans_per_s: f64,
}

/// Measures all ways, with the log on this disk or in this memory. Returns the slices of each
/// round.
pub(crate) fn measure(
    loaded: &Loaded,
    effort: &Effort,
    whole: &Place,
    durability: Durability,
) -> Result<Vec<Vec<Slice>>, Failure> {
    let mut subject = Subject::open(loaded, "scanning", whole, durability, |_| ())?;
    subject.warm_up(effort.warm_up)?;
    let rows = u64::from(loaded.bank.branches) * u64::from(loaded.bank.accounts);
    let mut rounds = Vec::new();
    for round in 0..effort.scan_rounds {
        let mut slices = Vec::new();
        for step in 0..WAYS.len() {
            let way = (round + step) % WAYS.len();
            slices.push(slice(&mut subject, effort, way, rows)?);
        }
        rounds.push(slices);
    }
    subject.end(loaded)?;
    Ok(rounds)
}

fn slice(subject: &mut Subject, effort: &Effort, way: usize, rows: u64) -> Result<Slice, Failure> {
    let (is_over, mut scans) = (AtomicBool::new(false), Ok(0));
    let rate = subject.slice(
        |bank, run| {
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| beside(bank, WAYS[way].1, rows, &is_over));
                let ran = run();
                is_over.store(true, Ordering::Relaxed);
                scans = reader.join().map_err(|_| "the reader died")?;
                ran
            })
        },
        effort.scan_slice,
    )?;
    let scans_per_s = scans? as f64 / effort.scan_slice.as_secs_f64();
    Ok(Slice { way, rate, scans_per_s })
}

/// Does what is done beside the writers until it is over. Returns how many scans ended by then.
fn beside(bank: &Bank, beside: Beside, rows: u64, is_over: &AtomicBool) -> Result<u64, Failure> {
    let mut scans = 0;
    while !is_over.load(Ordering::Relaxed) {
        let found = match beside {
            Beside::Nobody => return Ok(0),
            Beside::Spinner => {
                std::hint::spin_loop();
                continue;
            }
            Beside::Snapshots => by_snapshot(&bank.store, &bank.table(TABLE))?,
            Beside::Locks => by_locks(&bank.store, &bank.table(TABLE))?,
        };
        if found.rows != rows {
            return Err(format!("{} rows were read instead of {rows}", found.rows).into());
        }
        scans += u64::from(!is_over.load(Ordering::Relaxed));
    }
    Ok(scans)
}

fn by_snapshot(store: &Store, tree: &Tree) -> Result<Total, Failure> {
    let (snapshot, mut total) = (store.snapshot()?, Total::default());
    for row in snapshot.scan::<&[u8]>(tree, .., Direction::Up) {
        total.add(&row?.1)?;
    }
    Ok(total)
}

fn by_locks(store: &Store, tree: &Tree) -> Result<Total, Failure> {
    let (mut reading, mut total) = (store.begin(), Total::default());
    for row in reading.scan::<&[u8]>(tree, .., Direction::Up) {
        total.add(&row?.1)?;
    }
    Ok(total)
}

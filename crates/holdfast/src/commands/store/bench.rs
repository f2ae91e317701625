//! `holdfast store bench`.
//!
//! Promise: measures in a folder of its own, which is gone afterwards; every figure is of transfers
//! that were committed, and the balances agree with them.
//! Never: compares.

use super::bank::{BRANCHES, Bank, Measured};
use super::opened::{failed, what};
use crate::commands::folder::Folder;
use crate::output::{Output, Progress};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_figures::percentile;
use holdfast_store::Durability;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// What it does, for messages.
const DOING: &str = "measuring";

/// Threads that make transfers, each at a branch of its own.
const THREADS: [usize; 4] = [1, 2, 4, BRANCHES];

/// What a measurement came to.
struct Rate {
    threads: usize,
    durability: Durability,
    transfers_per_s: f64,
    /// Half of the transfers took at most so long, and all but one of a hundred.
    took_us: (f64, f64),
}

/// Measures.
pub(super) fn bench(directory: &Path, seconds: f64, output: Output) -> Outcome<()> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    let time = time.ok_or_else(|| {
        let why = format!("{seconds} seconds are no time");
        Problem::new(Exit::Usage, what(DOING, directory), why, "correct --seconds")
    })?;
    let folder = Folder::make(directory).map_err(|error| failed(DOING, directory, &error))?;
    let rates = rates(&folder, time).map_err(|error| failed(DOING, directory, &*error))?;
    let text: String = rates.iter().map(Rate::text).collect();
    output.result(&rates.iter().map(Rate::json).collect::<Vec<_>>(), &text);
    Ok(())
}

fn rates(folder: &Folder, time: Duration) -> Measured<Vec<Rate>> {
    let mut progress = Progress::new();
    progress.say("filling a bank");
    let mut bank = Bank::fill(folder.path())?;
    let mut rates = Vec::new();
    for durability in [Durability::Disk, Durability::Memory] {
        for threads in THREADS {
            progress.say(&format!("{threads} threads, {}", waits(durability)));
            rates.push(rate(&mut bank, threads, durability, time)?);
        }
    }
    progress.say("adding up");
    bank.close()?;
    Ok(rates)
}

fn rate(bank: &mut Bank, threads: usize, durability: Durability, time: Duration) -> Measured<Rate> {
    let began = Instant::now();
    let mut took_ns = bank.transfer(threads, durability, time)?;
    let seconds = began.elapsed().as_secs_f64();
    took_ns.sort_unstable();
    let us = |percent| percentile(&took_ns, percent) as f64 / 1000.0;
    let transfers_per_s = took_ns.len() as f64 / seconds;
    Ok(Rate { threads, durability, transfers_per_s, took_us: (us(50), us(99)) })
}

fn waits(durability: Durability) -> &'static str {
    match durability {
        Durability::Disk => "waiting for the disk",
        Durability::Memory => "not waiting",
    }
}

impl Rate {
    fn text(&self) -> String {
        let Rate { threads, durability, transfers_per_s, took_us: (p50, p99) } = self;
        let waits = waits(*durability);
        format!(
            "{threads} threads, {waits:<20} {transfers_per_s:>9.0} transfers/s, half within \
             {p50:.0} us, 99 of 100 within {p99:.0} us\n"
        )
    }

    fn json(&self) -> Value {
        let class = match self.durability {
            Durability::Disk => "disk",
            Durability::Memory => "memory",
        };
        json!({
            "threads": self.threads,
            "class": class,
            "transfers_per_s": self.transfers_per_s,
            "p50_us": self.took_us.0,
            "p99_us": self.took_us.1,
        })
    }
}

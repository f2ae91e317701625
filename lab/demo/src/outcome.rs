//! What a load did: every acknowledged transaction, as the program that ran it noted it.
//!
//! Promise: a transaction counts as acknowledged exactly if the load's own log lists it, that is,
//! if its client had the database's answer to the commit.
//! Never: starts or interprets a load.
//!
//! All loads write the lines of pgbench's transaction log: client, number, latency in
//! microseconds, script, seconds and microseconds since 1970.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use holdfast_figures::percentile;

use super::error::DemoError;

/// How the names of transaction logs begin.
pub(super) const LOG_PREFIX: &str = "transactions";

/// One acknowledged transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acknowledged {
    /// Number of the client, from 0.
    pub(super) client: u32,
    /// Number of the transaction at this client, from 1.
    pub(super) seq: u64,
    /// From its start to its acknowledgement.
    pub(super) latency_us: u64,
    /// When it was acknowledged, microseconds since 1970.
    pub(super) at_us: u64,
}

/// What a finished load reported.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Transactions per second.
    pub(super) per_second: f64,
    /// Transactions that failed, plus clients that gave up.
    pub(super) failed: u64,
    /// What the load said of that.
    pub(super) said: String,
    /// Every acknowledged transaction, in the order of acknowledgement.
    pub(super) acknowledged: Vec<Acknowledged>,
}

impl Outcome {
    /// The outcome of a load that says no rate itself: from the start of the first acknowledged
    /// transaction to the end of the last.
    pub(super) fn counted(acknowledged: Vec<Acknowledged>, failed: u64, said: String) -> Outcome {
        let began_us = acknowledged.iter().map(|one| one.at_us - one.latency_us).min();
        let ended_us = acknowledged.last().map_or(0, |one| one.at_us);
        let took = Duration::from_micros(ended_us - began_us.unwrap_or(0));
        let per_second = acknowledged.len() as f64 / took.as_secs_f64();
        Outcome { per_second, failed, said, acknowledged }
    }

    /// This outcome of a load that nothing disturbed, in which no transaction may fail.
    pub(super) fn undisturbed(self) -> Result<Outcome, DemoError> {
        match self.failed {
            0 => Ok(self),
            failed => {
                let said = self.said;
                let cause = format!("{failed} failed without any fault; the load said: {said}");
                Err(DemoError::new("measuring", cause))
            }
        }
    }

    /// Latency in milliseconds that `percent` of the transactions did not exceed.
    pub(super) fn latency_ms(&self, percent: u64) -> f64 {
        let mut latencies: Vec<u64> = self.acknowledged.iter().map(|one| one.latency_us).collect();
        latencies.sort_unstable();
        Duration::from_micros(percentile(&latencies, percent)).as_secs_f64() * 1e3
    }

    /// The longest time, in milliseconds, in which nobody got an acknowledgement.
    pub(super) fn longest_stall_ms(&self) -> f64 {
        let gaps = self.acknowledged.windows(2).map(|two| two[1].at_us - two[0].at_us);
        Duration::from_micros(gaps.max().unwrap_or(0)).as_secs_f64() * 1e3
    }
}

/// The rows of one round that the database has: numbers by client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Present {
    rows: BTreeMap<u32, HashSet<u64>>,
}

impl Present {
    /// Reads lines of client and number, separated by `|` or a tab.
    pub(super) fn parse(text: &str) -> Result<Present, DemoError> {
        let wrong = |line: &str| DemoError::new("reading the recovered rows", format!("`{line}`"));
        let mut present = Present::default();
        for line in text.lines() {
            let (client, seq) = line.split_once(['|', '\t']).ok_or_else(|| wrong(line))?;
            let client = client.parse().map_err(|_| wrong(line))?;
            present.insert(client, seq.parse().map_err(|_| wrong(line))?);
        }
        Ok(present)
    }

    /// Adds one row.
    pub(super) fn insert(&mut self, client: u32, seq: u64) {
        self.rows.entry(client).or_default().insert(seq);
    }

    /// How many of the acknowledged transactions are not present.
    pub(super) fn missing(&self, acknowledged: &[Acknowledged]) -> u64 {
        let has = |one: &&Acknowledged| {
            self.rows.get(&one.client).is_some_and(|all| all.contains(&one.seq))
        };
        (acknowledged.len() - acknowledged.iter().filter(has).count()) as u64
    }

    /// How many numbers are missing below the highest one present, over all clients: holes, which
    /// no failure may leave.
    pub(super) fn holes(&self) -> u64 {
        let of = |all: &HashSet<u64>| all.iter().max().map_or(0, |max| max - all.len() as u64);
        self.rows.values().map(of).sum()
    }
}

/// Removes the files of an earlier load.
pub(super) fn empty(folder: &Path) -> io::Result<()> {
    fs::read_dir(folder)?.try_for_each(|entry| fs::remove_file(entry?.path()))
}

/// Reads every transaction log in `folder`, in the order of acknowledgement.
pub(super) fn read_transactions(folder: &Path) -> io::Result<Vec<Acknowledged>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(LOG_PREFIX) {
            all.extend(fs::read_to_string(entry.path())?.lines().filter_map(transaction));
        }
    }
    all.sort_by_key(|one| one.at_us);
    Ok(all)
}

/// One line of a log. A line that names a failure instead of a latency is no acknowledgement.
fn transaction(line: &str) -> Option<Acknowledged> {
    let mut fields = line.split_whitespace();
    let client = fields.next()?.parse().ok()?;
    let seq = fields.next()?.parse().ok()?;
    let latency_us = fields.next()?.parse().ok()?;
    let _script = fields.next()?;
    let seconds: u64 = fields.next()?.parse().ok()?;
    let micros: u64 = fields.next()?.parse().ok()?;
    Some(Acknowledged { client, seq, latency_us, at_us: seconds * 1_000_000 + micros })
}

#[cfg(test)]
mod tests;

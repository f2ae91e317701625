//! Load: pgbench, and what it says happened.
//!
//! Promise: a transaction counts as acknowledged exactly if pgbench's own log lists it, that is,
//! if the client had the server's answer to its COMMIT.
//! Never: interprets a run; it starts one and reads its logs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Child;

use super::cluster::{Cluster, SCALE};
use crate::demo::error::{DemoError, During};
use crate::demo::figures::percentile;

/// TPC-B as pgbench runs it, with one row more: which transaction of which client this was. The
/// variable `seq` counts the transactions of a client from 1, as pgbench's log does.
pub(super) const COUNTED_TPCB: &str = "\
\\set seq :seq + 1
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO acknowledged (round, client, seq, delta) VALUES (:round, :client_id, :seq, :delta);
END;
";

/// What to run.
pub(super) struct Load {
    /// Connections, each with one transaction under way.
    pub(super) clients: u32,
    /// For how long.
    pub(super) seconds: u32,
    /// Number under which [`COUNTED_TPCB`] writes its rows; `None` runs plain TPC-B.
    pub(super) round: Option<u32>,
}

/// A running pgbench.
pub(super) struct Running {
    child: Child,
    prefix: PathBuf,
}

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

/// What a finished pgbench reported.
pub(super) struct Outcome {
    /// Transactions per second, without the time to connect.
    pub(super) per_second: f64,
    /// Transactions that failed, plus clients that gave up.
    pub(super) failed: u64,
    /// Every acknowledged transaction, in the order of acknowledgement.
    pub(super) acknowledged: Vec<Acknowledged>,
}

impl Load {
    /// Starts pgbench against the cluster.
    pub(super) fn start(&self, cluster: &Cluster) -> Result<Running, DemoError> {
        let doing = || "starting pgbench".into();
        let prefix = cluster.logs().join("transactions");
        empty(&cluster.logs()).during(doing)?;
        let output = |name: &str| File::create(cluster.logs().join(name));
        let mut command = cluster.command("pgbench");
        command.args(["-n", "-M", "prepared", "-l", "-s", &SCALE.to_string()]);
        command.arg(format!("--log-prefix={}", prefix.display()));
        command.args(["-c", &self.clients.to_string(), "-j", &self.clients.min(2).to_string()]);
        command.args(["-T", &self.seconds.to_string()]);
        if let Some(round) = self.round {
            let script = cluster.logs().join("script");
            fs::write(&script, COUNTED_TPCB).during(doing)?;
            cluster.own(&script)?;
            command.args(["-D", "seq=0", "-D", &format!("round={round}"), "-f"]).arg(script);
        }
        command.stdout(output("stdout").during(doing)?).stderr(output("stderr").during(doing)?);
        Ok(Running { child: command.spawn().during(doing)?, prefix })
    }

    /// Runs pgbench to its end, which must be a good one.
    pub(super) fn run(&self, cluster: &Cluster) -> Result<Outcome, DemoError> {
        let outcome = self.start(cluster)?.finish()?;
        if outcome.failed > 0 {
            let cause = format!("{} transactions failed without any fault", outcome.failed);
            return Err(DemoError::new("measuring", cause));
        }
        Ok(outcome)
    }
}

impl Running {
    /// Waits for the end and reads the logs. A run whose clients lost their server is an outcome,
    /// not an error.
    pub(super) fn finish(mut self) -> Result<Outcome, DemoError> {
        let doing = || "reading the logs of pgbench".into();
        self.child.wait().during(doing)?;
        let logs = self.prefix.parent().unwrap_or(Path::new("/"));
        let stdout = fs::read_to_string(logs.join("stdout")).during(doing)?;
        let stderr = fs::read_to_string(logs.join("stderr")).during(doing)?;
        let acknowledged = read_transactions(logs).during(doing)?;
        if acknowledged.is_empty() {
            let cause = format!("no transaction was acknowledged; it said: {stderr}");
            return Err(DemoError::new("running pgbench", cause));
        }
        Ok(Outcome {
            per_second: per_second(&stdout).unwrap_or(0.0),
            failed: failed(&stdout, &stderr),
            acknowledged,
        })
    }
}

impl Drop for Running {
    /// A load that is dropped unfinished belongs to a run that failed.
    fn drop(&mut self) {
        let _may_have_ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Outcome {
    /// Latency in milliseconds that `percent` of the transactions did not exceed.
    pub(super) fn latency_ms(&self, percent: u64) -> f64 {
        let mut latencies: Vec<u64> = self.acknowledged.iter().map(|one| one.latency_us).collect();
        latencies.sort_unstable();
        std::time::Duration::from_micros(percentile(&latencies, percent)).as_secs_f64() * 1e3
    }

    /// The longest time, in milliseconds, in which nobody got an acknowledgement.
    pub(super) fn longest_stall_ms(&self) -> f64 {
        let gaps = self.acknowledged.windows(2).map(|two| two[1].at_us - two[0].at_us);
        std::time::Duration::from_micros(gaps.max().unwrap_or(0)).as_secs_f64() * 1e3
    }
}

/// Removes the files of an earlier run.
fn empty(folder: &Path) -> std::io::Result<()> {
    fs::read_dir(folder)?.try_for_each(|entry| fs::remove_file(entry?.path()))
}

/// Reads every transaction log in `folder`: one file per thread.
fn read_transactions(folder: &Path) -> std::io::Result<Vec<Acknowledged>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("transactions.") {
            all.extend(fs::read_to_string(entry.path())?.lines().filter_map(transaction));
        }
    }
    all.sort_by_key(|one| one.at_us);
    Ok(all)
}

/// One line of pgbench's log: client, number, latency, script, seconds, microseconds. A line that
/// names a failure instead of a latency is no acknowledgement.
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

/// The figure in `tps = 1234.5 (without initial connection time)`.
fn per_second(stdout: &str) -> Option<f64> {
    let line = stdout.lines().find_map(|line| line.strip_prefix("tps = "))?;
    line.split(' ').next()?.parse().ok()
}

/// Transactions that failed by pgbench's count, plus clients that gave up.
fn failed(stdout: &str, stderr: &str) -> u64 {
    let counted = stdout.lines().find_map(|line| {
        line.strip_prefix("number of failed transactions: ")?.split(' ').next()?.parse::<u64>().ok()
    });
    let gave_up = stderr.lines().filter(|line| line.contains("aborted")).count() as u64;
    counted.unwrap_or(0) + gave_up
}

#[cfg(test)]
mod tests;

//! Load: pgbench, and what it says happened.
//!
//! Promise: pgbench notes a transaction when its client had the server's answer to the COMMIT.
//! Never: interprets a run; it starts one and reads its logs.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Child;

use super::cluster::{Cluster, SCALE};
use crate::error::{DemoError, During};
use crate::outcome::{LOG_PREFIX, Outcome, empty, read_transactions};

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
pub(crate) struct Running {
    child: Child,
    logs: PathBuf,
}

impl Load {
    /// Starts pgbench against the cluster.
    pub(super) fn start(&self, cluster: &Cluster) -> Result<Running, DemoError> {
        let doing = || "starting pgbench".into();
        let logs = cluster.logs();
        empty(&logs).during(doing)?;
        let output = |name: &str| File::create(logs.join(name));
        let mut command = cluster.command("pgbench");
        command.args(["-n", "-M", "prepared", "-l", "-s", &SCALE.to_string()]);
        command.arg(format!("--log-prefix={}", logs.join(LOG_PREFIX).display()));
        command.args(["-c", &self.clients.to_string(), "-j", &self.clients.min(2).to_string()]);
        command.args(["-T", &self.seconds.to_string()]);
        if let Some(round) = self.round {
            let script = logs.join("script");
            fs::write(&script, COUNTED_TPCB).during(doing)?;
            cluster.owner.own(&script)?;
            command.args(["-D", "seq=0", "-D", &format!("round={round}"), "-f"]).arg(script);
        }
        command.stdout(output("stdout").during(doing)?).stderr(output("stderr").during(doing)?);
        Ok(Running { child: command.spawn().during(doing)?, logs })
    }
}

impl Running {
    /// Waits for the end and reads the logs. A run whose clients lost their server is an outcome,
    /// not an error.
    pub(super) fn finish(mut self) -> Result<Outcome, DemoError> {
        let doing = || "reading the logs of pgbench".into();
        self.child.wait().during(doing)?;
        let stdout = fs::read_to_string(self.logs.join("stdout")).during(doing)?;
        let stderr = fs::read_to_string(self.logs.join("stderr")).during(doing)?;
        let acknowledged = read_transactions(&self.logs).during(doing)?;
        if acknowledged.is_empty() {
            let cause = format!("no transaction was acknowledged; it said: {stderr}");
            return Err(DemoError::new("running pgbench", cause));
        }
        Ok(Outcome {
            per_second: per_second(&stdout).unwrap_or(0.0),
            failed: failed(&stdout, &stderr),
            said: stderr,
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

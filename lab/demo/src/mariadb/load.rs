//! Load: sysbench's write-only transactions, and what was acknowledged.
//!
//! Promise: sysbench notes a transaction when its client had the server's answer to the COMMIT.
//! Never: interprets a run; it starts one and reads its logs.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use super::server::Server;
use crate::error::{DemoError, During};
use crate::outcome::{self, Outcome};
use crate::processes;

/// The transaction, as a script for sysbench.
const SCRIPT: &str = include_str!("ledger.lua");

/// Beyond its time, how long a load may take to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tables, and rows in each.
const SIZE: [&str; 2] = ["--tables=2", "--table-size=20000"];

/// Name of the database.
pub(super) const DATABASE: &str = "sysbench";

/// What to run.
pub(super) struct Load {
    /// Connections, each with one transaction under way.
    pub(super) threads: u32,
    /// For how long.
    pub(super) seconds: u32,
    /// Number under which a row is written for each transaction, if one is.
    pub(super) round: Option<u32>,
}

/// A running sysbench.
pub(crate) struct Running {
    child: Child,
    logs: PathBuf,
    seconds: u32,
}

/// Fills the tables.
pub(super) fn prepare(server: &Server) -> Result<(), DemoError> {
    server.run("sysbench", |command| {
        connect(command, server).arg("oltp_write_only").args(SIZE).arg("prepare")
    })?;
    Ok(())
}

fn connect<'a>(command: &'a mut Command, server: &Server) -> &'a mut Command {
    command.arg(format!("--mysql-socket={}", server.socket().display()));
    command.args(["--mysql-user=root", &format!("--mysql-db={DATABASE}")])
}

impl Load {
    /// Starts sysbench against the server.
    pub(super) fn start(&self, server: &Server) -> Result<Running, DemoError> {
        let doing = || "starting sysbench".into();
        let logs = server.logs();
        outcome::empty(&logs).during(doing)?;
        let script = logs.join("ledger.lua");
        fs::write(&script, SCRIPT).during(doing)?;
        server.owner.own(&script)?;
        let output = |name: &str| File::create(logs.join(name));
        let mut command = server.command("sysbench");
        connect(&mut command, server).args(SIZE).arg(format!("--threads={}", self.threads));
        command.arg(format!("--time={}", self.seconds));
        command.arg(format!("--ledger={}", logs.display()));
        command.arg(format!("--round={}", self.round.map_or(-1, i64::from)));
        command.arg(script).arg("run");
        command.stdout(output("stdout").during(doing)?).stderr(output("stderr").during(doing)?);
        let child = command.spawn().during(doing)?;
        Ok(Running { child, logs, seconds: self.seconds })
    }
}

impl Running {
    /// Waits for the end and reads the logs. A run whose clients lost their server is an outcome,
    /// not an error.
    pub(super) fn finish(mut self) -> Result<Outcome, DemoError> {
        let patience = PATIENCE + Duration::from_secs(self.seconds.into());
        let ended =
            processes::wait(&mut self.child, patience).during(|| "waiting for sysbench".into())?;
        self.outcome(u64::from(!ended.is_some_and(|status| status.success())))
    }

    /// Ends a load whose server was killed: its clients would wait for another.
    pub(super) fn end(mut self) -> Result<Outcome, DemoError> {
        let doing = || "ending sysbench".into();
        self.child.kill().and_then(|()| self.child.wait()).during(doing)?;
        self.outcome(0)
    }

    fn outcome(&self, failed: u64) -> Result<Outcome, DemoError> {
        let doing = || "reading the logs of sysbench".into();
        let acknowledged = outcome::read_transactions(&self.logs).during(doing)?;
        let read = |name: &str| fs::read_to_string(self.logs.join(name)).unwrap_or_default();
        let said = read("stdout") + &read("stderr");
        if acknowledged.is_empty() {
            let cause = format!("no transaction was acknowledged; it said: {said}");
            return Err(DemoError::new("running sysbench", cause));
        }
        Ok(Outcome::counted(acknowledged, failed, said))
    }
}

impl Drop for Running {
    /// A load that is dropped unfinished belongs to a run that failed.
    fn drop(&mut self) {
        let _may_have_ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

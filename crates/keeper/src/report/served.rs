//! What status prints of the server and its logs.
//!
//! Promise: as for volumes: the same facts as text and as JSON, which only gains fields.
//! Never: finds anything out but by looking into a region.

use super::section::{Shown, shown};
use super::words::{UPGRADE, also, astray_text, is_given_up, verdict_with};
use crate::supervisor::server::known::KnownServer;
use holdfast_attach::bond::Loss;
use holdfast_attach::observe::{Observation, observe};
use holdfast_client::protocol::LOG_PREFIX;
use holdfast_config::claims::{Failure, PowerSource, Verdict};
use holdfast_config::problem::Outcome;
use holdfast_config::sizes::rounded;
use holdfast_config::verdict_lines;
use holdfast_config::{Config, ServedLogConfig};
use holdfast_machine::bounded;
use holdfast_machine::found::{memory_of, verdict_of_log};
use holdfast_machine::standstill::Standstill;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The server.
#[derive(Debug, Serialize, Deserialize)]
pub struct ServerStatus {
    /// `starting`, `serving`, `restarting`, `given up`, `detached`.
    pub state: String,
    /// Why, when it was given up.
    pub problem: Option<String>,
    /// Where clients connect.
    pub socket: PathBuf,
    /// The process, while there is one.
    pub pid: Option<u32>,
    /// Servers that died and were replaced.
    pub restarts: u64,
    /// Servers that were replaced on request.
    pub upgrades: u64,
    /// Longest time without one, in milliseconds, rounded up.
    pub longest_stall_ms: u64,
    /// Rights that the machine would not take from it, and why.
    pub rights_kept: Vec<String>,
    /// What recovery found when it started.
    pub recovery: Option<String>,
    /// The newest complaint.
    pub last_error: Option<String>,
    /// That it stands still, why, and for how long.
    #[serde(default)]
    pub standstills: Vec<Standstill>,
}

/// A served log.
#[derive(Debug, Serialize, Deserialize)]
pub struct LogStatus {
    /// Its name.
    pub name: String,
    /// `served`, `not served`.
    #[serde(default)]
    pub state: String,
    /// How the configuration differs from what the keeper has, and what to do.
    #[serde(default)]
    pub problem: Option<String>,
    /// Its directory.
    pub log: PathBuf,
    /// What the region is made of.
    pub medium: String,
    /// The failures that acknowledgements must survive, as configured.
    pub must_survive: Vec<Failure>,
    /// What acknowledgements mean; missing when the claims refuse the configuration.
    pub verdict: Option<Verdict>,
    /// Clients that have a session.
    pub clients: u64,
    /// Most clients at a time.
    pub clients_max: u32,
    /// Appends acknowledged.
    pub appended: u64,
    /// Appends that were repeated after a server's death, and answered as the first time.
    pub replayed: u64,
    /// Requests and hellos that were refused.
    pub refused: u64,
    /// Times a client's queue was found damaged, and made anew.
    pub damage: u64,
    /// Bytes acknowledged that the log's device does not have yet.
    pub dirty_bytes: u64,
    /// Bytes that the log's reader has not released.
    pub unreleased_bytes: u64,
    /// Speed of the log's device while draining; 0 before the first measurement.
    pub drain_rate_bytes_per_s: u64,
    /// What went wrong with the log, or with looking at it.
    pub last_error: Option<String>,
    /// What memory that was gone since the system started may have cost.
    #[serde(default)]
    pub loss: Option<String>,
    /// What stands still, why, and for how long.
    #[serde(default)]
    pub standstills: Vec<Standstill>,
}

impl ServerStatus {
    pub(crate) fn new(socket: &Path, known: KnownServer) -> ServerStatus {
        let (longest_stall_ms, ready) = (known.longest_stall_ms(), known.of.ready);
        ServerStatus {
            state: known.state.word().into(),
            problem: also(known.of.unreached, known.problem.map(|it| it.to_string())),
            socket: socket.to_owned(),
            pid: known.pid,
            restarts: known.restarts,
            upgrades: known.upgrades,
            longest_stall_ms,
            rights_kept: ready.iter().flat_map(|ready| ready.rights_kept.clone()).collect(),
            recovery: ready.map(|ready| ready.recovery),
            last_error: known.last_error,
            standstills: known.standstills,
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("\nserver: {}", self.state);
        if let Some(pid) = self.pid {
            let _ = write!(text, ", process {pid}");
        }
        let (restarts, upgrades) = (self.restarts, self.upgrades);
        let _ = write!(text, ", {restarts} restarts, {upgrades} upgrades");
        let _ = write!(text, ", longest stall {} ms", self.longest_stall_ms);
        let mut line = |key: &str, value: &str| {
            let _ = write!(text, "\n  {key:<12} {value}");
        };
        self.problem.iter().for_each(|why| line("problem", why));
        line("socket", &self.socket.display().to_string());
        self.rights_kept.iter().for_each(|right| line("keeps", right));
        self.standstills.iter().for_each(|it| line("stands still", &it.to_string()));
        line("last error", self.last_error.as_deref().unwrap_or("none"));
        text + "\n"
    }
}

impl LogStatus {
    /// Every configured log and every one that the keeper has, with what the server said of it, if
    /// one runs.
    pub(crate) fn all(
        config: &Config,
        had: Option<&Config>,
        server: Option<&KnownServer>,
    ) -> Vec<LogStatus> {
        let ready = server.and_then(|server| server.of.ready.clone()).unwrap_or_default();
        let its_server = &had.unwrap_or(config).server;
        let one = |shown: Shown<'_, ServedLogConfig>| {
            let Shown { name, section: log, came_later, problem } = shown;
            let service = format!("{LOG_PREFIX}{name}");
            let told = ready.verdicts.iter().find(|(of, _)| *of == service);
            let told = told.map(|(_, verdict)| verdict.clone());
            let is_served = told.is_some() && !is_given_up(server);
            let state = if is_served { "served" } else { "not served" };
            let judged =
                || verdict_of_log(&service, log, memory_of(&log.memory), PowerSource::None).ok();
            let unserved = ready.unserved.iter().find(|(of, _)| *of == service);
            let unserved = unserved.map(|(_, problem)| problem.to_string());
            let astray = server.and_then(|server| server.of.astray.get(&service).cloned());
            let verdict = verdict_with(astray.as_ref(), told.or_else(judged));
            let unserved = unserved.or(astray.map(|it| astray_text(&it, UPGRADE)));
            let trouble = server.and_then(|server| server.of.log_troubles.get(&service).cloned());
            let unserved = also(trouble, unserved);
            let standing = server.and_then(|server| server.of.logs.get(&service).cloned());
            let standstills = standing.unwrap_or_default();
            let observed = (!came_later).then(|| observe(&log.memory.medium()));
            let status = LogStatus::new(name, log, (verdict, unserved), observed);
            let clients_max = its_server.clients_of(log.clients_max);
            LogStatus { state: state.to_owned(), problem, clients_max, standstills, ..status }
        };
        shown(had.map(|had| &had.logs), &config.logs).into_iter().map(one).collect()
    }

    fn new(
        name: &str,
        log: &ServedLogConfig,
        (verdict, unserved): (Option<Verdict>, Option<String>),
        observed: Option<Outcome<Observation>>,
    ) -> LogStatus {
        let observed = observed.as_ref().map(Result::as_ref);
        let damaged = observed.and_then(Result::err).filter(|problem| problem.exit.stays());
        let damaged = damaged.map(ToString::to_string);
        let seen = observed.and_then(Result::ok);
        let served = seen.map(|seen| seen.served).unwrap_or_default();
        let (loss, silent) = match bounded::read(&log.log, Loss::of_this_run) {
            Ok(loss) => (loss, None),
            Err(time) => (None, Some(bounded::silent("its", &log.log, time).to_string())),
        };
        LogStatus {
            name: name.to_owned(),
            state: String::new(),
            problem: None,
            log: log.log.clone(),
            medium: log.memory.medium.word().into(),
            must_survive: log.must_survive.clone(),
            verdict,
            // What a dead server counted last is no client now.
            clients: seen.and_then(|seen| seen.server_pid).map_or(0, |_| served.clients),
            clients_max: log.clients_max,
            appended: served.appended,
            replayed: served.replayed,
            refused: served.refused,
            damage: served.damage,
            dirty_bytes: seen.map_or(0, |seen| seen.dirty_bytes()),
            unreleased_bytes: seen.map_or(0, |seen| seen.unapplied_bytes()),
            drain_rate_bytes_per_s: seen.map_or(0, |seen| seen.drain_rate_bytes_per_s),
            last_error: unserved
                .or(silent)
                .or(seen.and_then(|seen| seen.log_error_text(&log.log)))
                .or(damaged),
            loss,
            standstills: Vec::new(),
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let Self { name, state, clients, clients_max, .. } = self;
        let mut text = format!("\nlog {name}: {state}, {clients} of {clients_max} clients");
        let mut line = |key: &str, value: &str| {
            let _ = write!(text, "\n  {key:<12} {value}");
        };
        self.problem.iter().for_each(|why| line("problem", why));
        line("log", &self.log.display().to_string());
        match &self.verdict {
            Some(verdict) => verdict_lines(verdict).iter().for_each(|(k, v)| line(k, v)),
            None => line("acknowledges", "never: the claims refuse this configuration"),
        }
        let (dirty, unreleased) = (rounded(self.dirty_bytes), rounded(self.unreleased_bytes));
        line("dirty", &format!("{dirty}, and {unreleased} not released by the reader"));
        let (appended, replayed) = (self.appended, self.replayed);
        line("appended", &format!("{appended}, of which repeated and recognised {replayed}"));
        let (refused, damage) = (self.refused, self.damage);
        line("refused", &format!("{refused} requests; {damage} queues were damaged and rebuilt"));
        self.standstills.iter().for_each(|it| line("stands still", &it.to_string()));
        line("last error", self.last_error.as_deref().unwrap_or("none"));
        self.loss.iter().for_each(|loss| line("loss", loss));
        text + "\n"
    }
}

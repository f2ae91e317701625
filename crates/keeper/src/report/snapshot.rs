//! What status prints of the snapshots that the server keeps.
//!
//! Promise: as for volumes: the same facts as text and as JSON, which only gains fields.
//! Never: finds anything out but by looking into a region.

use super::section::{Shown, shown};
use super::words::{is_given_up, of};
use crate::supervisor::server::known::KnownServer;
use holdfast_client::protocol::SNAPSHOT_PREFIX;
use holdfast_config::claims::{PowerSource, Verdict};
use holdfast_config::sizes::rounded;
use holdfast_config::verdict_lines;
use holdfast_config::{Config, SnapshotConfig};
use holdfast_machine::found::memory_of_disk;
use holdfast_machine::holders::is_mapped_by;
use holdfast_memory::Region;
use holdfast_server::words;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A service of snapshots.
#[derive(Debug, Serialize, Deserialize)]
pub struct SnapshotStatus {
    /// Its name.
    pub name: String,
    /// `served`, `not served`, `not made`.
    pub state: String,
    /// How the configuration differs from what the keeper has, and what to do.
    #[serde(default)]
    pub problem: Option<String>,
    /// Bytes for all snapshots together.
    pub size_bytes: u64,
    /// The disks that a snapshot takes.
    pub disks: Vec<String>,
    /// Clients that use it.
    #[serde(default)]
    pub clients: u64,
    /// Most clients at a time.
    #[serde(default)]
    pub clients_max: u32,
    /// What a snapshot survives; missing when the claims refuse the configuration.
    pub verdict: Option<Verdict>,
    /// Why it is not served.
    pub last_error: Option<String>,
}

impl SnapshotStatus {
    /// All that are configured and all that the keeper has, with what the server said of them, if
    /// one runs.
    pub(crate) fn all(
        config: &Config,
        had: Option<&Config>,
        server: Option<&KnownServer>,
    ) -> Vec<SnapshotStatus> {
        let ready = server.and_then(|server| server.of.ready.as_ref());
        let its_server = &had.unwrap_or(config).server;
        let one = |shown: Shown<'_, SnapshotConfig>| {
            let Shown { name, section: snapshot, came_later, problem } = shown;
            let (service, store) = (format!("{SNAPSHOT_PREFIX}{name}"), snapshot.store());
            let told = ready.and_then(|ready| of(&service, &ready.verdicts)).cloned();
            let unserved = ready.and_then(|ready| of(&service, &ready.unserved));
            let seen = (!came_later).then(|| Region::observe(&store.medium()).ok()).flatten();
            let is_served = told.as_ref().filter(|_| !is_given_up(server));
            let state = match (is_served, &seen) {
                (Some(_), _) => "served",
                (None, Some(_)) => "not served",
                (None, None) if came_later => "not served",
                (None, None) => "not made",
            };
            // What a dead server counted last is no client now.
            let served = seen.filter(|seen| is_mapped_by(&store.medium(), seen.server_pid()));
            let (whose, power) = (format!("snapshot {name}"), PowerSource::None);
            let judged = || store.verdict_on(&whose, memory_of_disk(&store), power).ok();
            SnapshotStatus {
                name: name.to_owned(),
                state: state.to_owned(),
                problem,
                size_bytes: snapshot.size.0,
                disks: snapshot.disks.clone(),
                clients: served.map_or(0, |seen| seen.word(words::CLIENTS)),
                clients_max: its_server.clients_of(snapshot.clients_max),
                verdict: told.or_else(judged),
                last_error: unserved.map(ToString::to_string),
            }
        };
        shown(had.map(|had| &had.snapshots), &config.snapshots).into_iter().map(one).collect()
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let (name, state) = (&self.name, &self.state);
        let (clients, most) = (self.clients, self.clients_max);
        let mut text = format!("\nsnapshots {name}: {state}, {clients} of {most} clients");
        let mut line = |key: &str, value: &str| {
            let _ = write!(text, "\n  {key:<12} {value}");
        };
        self.problem.iter().for_each(|why| line("problem", why));
        line("size", &rounded(self.size_bytes));
        line("disks", &self.disks.join(", "));
        match &self.verdict {
            Some(verdict) => verdict_lines(verdict).iter().for_each(|(k, v)| line(k, v)),
            None => line("acknowledges", "never: the claims refuse this configuration"),
        }
        line("last error", self.last_error.as_deref().unwrap_or("none"));
        text + "\n"
    }
}

//! What status, list and messages print.
//!
//! Promise: the same facts as text and as JSON; the JSON has a version and only gains fields.
//! Never: finds anything out.

mod block_cache;
mod disk;
mod health;
mod judged;
mod keeper;
mod nbd_tls;
mod power;
mod section;
mod served;
mod snapshot;
mod table;
pub(crate) mod volume;
mod words;

pub(crate) use health::Health;
pub use keeper::KeeperStatus;
pub use power::PowerStatus;
pub(crate) use section::{CAME_LATER, START_AGAIN};
pub(crate) use volume::NOT_MADE;
pub use volume::{ATTACHING, OUT_OF_PLACE, VolumeStatus};
pub(crate) use words::UPGRADE;

use crate::sectionless::{Sectionless, sectionless};
use crate::supervisor::front_end::known::KnownFront;
use crate::supervisor::server::known::KnownServer;
use disk::DiskStatus;
use holdfast_config::Config;
use holdfast_config::problem::Outcome;
use holdfast_machine::confinement::Confined;
use holdfast_memory::Medium;
use serde::{Deserialize, Serialize};
use served::{LogStatus, ServerStatus};
use snapshot::SnapshotStatus;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use table::TableStatus;

/// Version of the JSON that `status --json` prints.
const SCHEMA: u32 = 1;

/// The status of everything.
#[derive(Debug, Serialize, Deserialize)]
pub struct StatusReport {
    /// Version of this object.
    pub schema: u32,
    /// The keeper, if one runs.
    pub keeper: Option<KeeperStatus>,
    /// Every volume, configured or attached.
    pub volumes: Vec<VolumeStatus>,
    /// The power source, if the keeper follows one.
    #[serde(default)]
    pub power: Option<PowerStatus>,
    /// The server, if logs are served.
    #[serde(default)]
    pub server: Option<ServerStatus>,
    /// Every log that is configured to be served.
    #[serde(default)]
    pub logs: Vec<LogStatus>,
    /// Every disk that is configured to be served.
    #[serde(default)]
    pub disks: Vec<DiskStatus>,
    /// All tables that are configured to be served.
    #[serde(default)]
    pub tables: Vec<TableStatus>,
    /// All snapshots that are configured to be served.
    #[serde(default)]
    pub snapshots: Vec<SnapshotStatus>,
    /// What is refused to each process that runs, as the kernel says.
    #[serde(default)]
    pub processes: Vec<Confined>,
    /// Memory that no section of the configuration has, and nobody else.
    #[serde(default)]
    pub without_section: Vec<Sectionless>,
    /// How everything is: `serving`, `degraded`, `not_running`, `no_answer`; the exit code says the
    /// same.
    #[serde(default)]
    pub health: Health,
    /// What is not well.
    #[serde(default)]
    pub troubles: Vec<String>,
    /// Why the keeper does not answer, if there is one that does not.
    #[serde(default)]
    pub no_answer: Option<String>,
}

impl StatusReport {
    /// A report of the current schema.
    pub fn new(keeper: Option<KeeperStatus>, volumes: Vec<VolumeStatus>) -> StatusReport {
        let (server, logs, disks) = (None, Vec::new(), Vec::new());
        let (tables, snapshots, processes) = (Vec::new(), Vec::new(), Vec::new());
        let without_section = Vec::new();
        let (health, troubles, no_answer) = (Health::default(), Vec::new(), None);
        StatusReport {
            schema: SCHEMA,
            keeper,
            volumes,
            power: None,
            server,
            logs,
            disks,
            tables,
            snapshots,
            processes,
            without_section,
            health,
            troubles,
            no_answer,
        }
    }

    /// With what is configured to be served, while no keeper runs.
    pub fn of_nobody(self, config: &Config) -> Self {
        self.with(config, None, None, &BTreeMap::new())
    }

    /// With the server, if one runs, its socket, what it is configured to serve, and the front ends
    /// of its disks. `had` is the configuration with which the keeper has begun, if there is one.
    pub(crate) fn with(
        mut self,
        config: &Config,
        had: Option<&Config>,
        server: Option<(&Path, KnownServer)>,
        fronts: &BTreeMap<String, Outcome<KnownFront>>,
    ) -> Self {
        let snapshot = server.as_ref().map(|(_, snapshot)| snapshot);
        self.logs = LogStatus::all(config, had, snapshot);
        self.disks = DiskStatus::all(config, had, snapshot, fronts);
        self.tables = TableStatus::all(config, had, snapshot);
        self.snapshots = SnapshotStatus::all(config, had, snapshot);
        self.server = server.map(|(socket, snapshot)| ServerStatus::new(socket, snapshot));
        self
    }

    /// With the memory that is there beside what is known.
    pub fn beside(mut self, known: impl Iterator<Item = Medium>) -> Self {
        self.without_section = sectionless(known);
        self
    }

    /// Every process that it tells of, by what it does.
    pub(crate) fn pids(&self) -> Vec<(String, u32)> {
        let keeper = self.keeper.iter().map(|keeper| ("keeper".to_owned(), Some(keeper.pid)));
        let server = self.server.iter().map(|server| ("server".to_owned(), server.pid));
        let volumes = self.volumes.iter().map(|it| (it.name.clone(), it.front_end_pid));
        let fronts = self.disks.iter().map(|it| (it, it.front_end.as_ref()));
        let disks = fronts.map(|(it, front)| (it.name.clone(), front.and_then(|front| front.pid)));
        let all = keeper.chain(server).chain(volumes).chain(disks);
        all.filter_map(|(process, pid)| Some((process, pid?))).collect()
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = match (&self.keeper, &self.no_answer) {
            (_, Some(why)) => format!("{why}\n"),
            (Some(keeper), None) => keeper.text(),
            (None, None) => "no keeper is running; start it with `holdfast serve`\n".into(),
        };
        self.troubles.iter().for_each(|trouble| text += &format!("not well: {trouble}\n"));
        self.power.iter().for_each(|power| text += &power.text());
        self.volumes.iter().for_each(|volume| text += &volume.text());
        self.server.iter().for_each(|server| text += &server.text());
        self.logs.iter().for_each(|log| text += &log.text());
        self.disks.iter().for_each(|disk| text += &disk.text());
        self.tables.iter().for_each(|table| text += &table.text());
        self.snapshots.iter().for_each(|snapshot| text += &snapshot.text());
        self.processes.iter().for_each(|process| {
            let _ = write!(text, "\n{process}");
        });
        text += if self.processes.is_empty() { "" } else { "\n" };
        let has_served = !(self.logs.is_empty() && self.disks.is_empty() && self.tables.is_empty());
        let has_served = has_served || !self.snapshots.is_empty();
        if self.volumes.is_empty() && !has_served {
            text += "no volumes are configured\n";
        }
        text
    }
}

#[cfg(test)]
mod tests;

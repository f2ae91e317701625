//! `[server]` and `[log.NAME]`: logs that other programs use through the server.
//!
//! Promise: as for volumes: what is returned was checked without looking at the machine.
//! Never: allows a user that the file does not name, but the one who runs the keeper.

use crate::access::{check_access, clients_default, uids_default};
use crate::claims::{Facts, Memory, PowerSource, Verdict};
use crate::claims::{Failure, MediumKind};
use crate::problem::Outcome;
use crate::regions::region_of;
use crate::section::{Section, region};
use crate::sizes::Size;
use crate::values::{
    MemoryConfig, check_path, log_config, must_survive_default, segment_for, verdict_of,
};
use holdfast_log::LogConfig;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// `[log.NAME]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServedLogConfig {
    /// The directory of the log's segment files.
    pub log: PathBuf,
    /// The region. Its `shm` file is `/dev/shm/holdfast/log-NAME` unless it says otherwise.
    pub memory: MemoryConfig,
    /// As for a volume.
    #[serde(default)]
    pub segment: Option<Size>,
    /// The failures that acknowledgements must survive.
    #[serde(default = "must_survive_default")]
    pub must_survive: Vec<Failure>,
    /// Acknowledge from disk whatever the memory can.
    #[serde(default)]
    pub write_through: bool,
    /// The users that may be clients; the keeper's own, unless it says otherwise.
    #[serde(default = "uids_default")]
    pub allow_uids: Vec<u32>,
    /// Most clients of this log at a time.
    #[serde(default = "clients_default")]
    pub clients_max: u32,
}

impl Section for ServedLogConfig {
    const KIND: &'static str = "log";

    fn complete(&mut self, name: &str) -> Result<(), String> {
        if self.memory.medium == MediumKind::Shm && self.memory.path.is_none() {
            self.memory.path = Some(region_of(&format!("log-{name}")));
        }
        self.memory.check()?;
        check_path("log", &self.log)?;
        self.segment = Some(segment_for(&self.memory, self.segment)?);
        check_access(&self.allow_uids, self.clients_max)
    }

    fn folder(&self) -> Option<(&'static str, &Path)> {
        Some(("log", &self.log))
    }

    fn paths(&self) -> Vec<(&'static str, &Path)> {
        [("log", &*self.log)].into_iter().chain(region(self.memory.path.as_deref())).collect()
    }
}

impl ServedLogConfig {
    /// The log's sizes; known once [`Self::complete`] has run.
    pub fn log_config(&self) -> LogConfig {
        log_config(&self.memory, self.segment)
    }

    /// What acknowledgements mean on the memory that was found.
    pub fn verdict_on(&self, whose: &str, memory: Memory, power: PowerSource) -> Outcome<Verdict> {
        let facts = Facts {
            memory,
            power,
            must_survive: &self.must_survive,
            write_through: self.write_through,
        };
        verdict_of(whose, &facts)
    }
}

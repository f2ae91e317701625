//! `[server]` and `[log.NAME]`: logs that other programs use through the server.
//!
//! Promise: as for volumes: what is returned was checked without looking at the machine.
//! Never: allows a user that the file does not name, but the one who runs the keeper.

use super::{
    Failure, MediumKind, MemoryConfig, check_path, log_config, must_survive_default, region_of,
    segment_for, verdict_of,
};
use crate::claims::{Facts, Memory, PowerSource, Verdict};
use crate::problem::Outcome;
use crate::sizes::Size;
use holdfast_log::LogConfig;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where the server listens unless the configuration says otherwise.
const SOCKET_DEFAULT: &str = "/run/holdfast/server.sock";
const CLIENTS_DEFAULT: u32 = 64;
/// Each client has a thread in the server and some 10 MiB of memory.
const CLIENTS_MAX: u32 = 1024;

/// `[server]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerConfig {
    /// The socket that clients connect to.
    #[serde(default = "socket_default")]
    pub socket: PathBuf,
    /// Most clients at a time, over all logs and disks.
    #[serde(default = "clients_default")]
    pub clients_max: u32,
}

impl ServerConfig {
    /// Most clients at a time of a service that lets in this many by itself.
    pub(crate) fn clients_of(&self, service_max: u32) -> u32 {
        service_max.min(self.clients_max)
    }
}

/// `[log.NAME]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServedLogConfig {
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

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig { socket: socket_default(), clients_max: clients_default() }
    }
}

fn socket_default() -> PathBuf {
    SOCKET_DEFAULT.into()
}

pub(super) fn clients_default() -> u32 {
    CLIENTS_DEFAULT
}

pub(super) fn uids_default() -> Vec<u32> {
    vec![rustix::process::geteuid().as_raw()]
}

impl ServerConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        check_path("socket", &self.socket)?;
        check_clients(self.clients_max)
    }
}

impl ServedLogConfig {
    /// Fills in what has a default that depends on the name, then checks every field.
    pub(super) fn complete(&mut self, name: &str) -> Result<(), String> {
        if self.memory.medium == MediumKind::Shm && self.memory.path.is_none() {
            self.memory.path = Some(region_of(&format!("log-{name}")));
        }
        self.memory.check()?;
        check_path("log", &self.log)?;
        self.segment = Some(segment_for(&self.memory, self.segment)?);
        check_access(&self.allow_uids, self.clients_max)
    }

    /// The log's sizes; known once [`Self::complete`] has run.
    pub(crate) fn log_config(&self) -> LogConfig {
        log_config(&self.memory, self.segment)
    }

    /// What acknowledgements mean on the memory that was found.
    pub(crate) fn verdict_on(
        &self,
        whose: &str,
        memory: Memory,
        power: PowerSource,
    ) -> Outcome<Verdict> {
        let facts = Facts {
            memory,
            power,
            must_survive: &self.must_survive,
            write_through: self.write_through,
        };
        verdict_of(whose, &facts)
    }
}

/// Who may be a client of a service, and how many.
pub(super) fn check_access(allow_uids: &[u32], clients_max: u32) -> Result<(), String> {
    match allow_uids.is_empty() {
        true => Err("allow_uids is empty: nobody could use it".into()),
        false => check_clients(clients_max),
    }
}

fn check_clients(clients_max: u32) -> Result<(), String> {
    match (1..=CLIENTS_MAX).contains(&clients_max) {
        true => Ok(()),
        false => Err(format!("clients_max = {clients_max} is not in 1..={CLIENTS_MAX}")),
    }
}

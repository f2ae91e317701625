//! `[table.NAME]`: tables that other programs ask through the server.
//!
//! Promise: as for served logs. Memory is believed to outlive the process alone unless the kernel
//! itself keeps it: nobody looks into the store's mapping.
//! Never: allows a user that the file does not name, but the one who runs the keeper.

use crate::access::{check_access, clients_default, uids_default};
use crate::claims::{Class, Facts, Memory, PowerSource, Verdict};
use crate::claims::{Failure, MediumKind};
use crate::problem::Outcome;
use crate::regions::region_of;
use crate::section::{Section, region};
use crate::values::{
    MemoryConfig, check_path, log_config, must_survive_default, segment_for, verdict_of,
};
use holdfast_log::LogConfig;
use holdfast_store::{Config as StoreConfig, Durability, LogPlace, archive_of, log_of};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// `[table.NAME]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableConfig {
    /// The directory of the store that has the tables.
    pub store: PathBuf,
    /// The ring of the store's log. Its `shm` file is `/dev/shm/holdfast/table-NAME` unless it says
    /// otherwise.
    pub memory: MemoryConfig,
    /// The failures that acknowledgements must survive.
    #[serde(default = "must_survive_default")]
    pub must_survive: Vec<Failure>,
    /// Answer from disk whatever the memory can.
    #[serde(default)]
    pub write_through: bool,
    /// The users that may be clients; the keeper's own, unless it says otherwise.
    #[serde(default = "uids_default")]
    pub allow_uids: Vec<u32>,
    /// Most clients at a time.
    #[serde(default = "clients_default")]
    pub clients_max: u32,
}

impl Section for TableConfig {
    const KIND: &'static str = "table";

    fn complete(&mut self, name: &str) -> Result<(), String> {
        if self.memory.medium == MediumKind::Shm && self.memory.path.is_none() {
            self.memory.path = Some(region_of(&format!("table-{name}")));
        }
        self.memory.check()?;
        segment_for(&self.memory, None)?;
        check_path("store", &self.store)?;
        check_access(&self.allow_uids, self.clients_max)
    }

    fn folder(&self) -> Option<(&'static str, &Path)> {
        Some(("store", &self.store))
    }

    fn paths(&self) -> Vec<(&'static str, &Path)> {
        [("store", &*self.store)].into_iter().chain(region(self.memory.path.as_deref())).collect()
    }
}

impl TableConfig {
    /// The directory of the store's log.
    pub fn log(&self) -> PathBuf {
        log_of(&self.store)
    }

    /// The directory of the store's archive.
    pub fn archive(&self) -> PathBuf {
        archive_of(&self.store)
    }

    /// The log's sizes.
    pub fn log_config(&self) -> LogConfig {
        let segment = segment_for(&self.memory, None).expect("the configuration was checked");
        log_config(&self.memory, Some(segment))
    }

    /// The store with its log's ring in this memory.
    pub fn store_config(&self) -> StoreConfig {
        let segment = segment_for(&self.memory, None).expect("the configuration was checked");
        let log = LogPlace::Embedded {
            memory: self.memory.medium(),
            ring_bytes: self.memory.size.0,
            segment_bytes: segment.0,
        };
        StoreConfig { log, ..StoreConfig::default() }
    }

    /// What acknowledgements mean.
    pub fn verdict(&self, name: &str, power: PowerSource) -> Outcome<Verdict> {
        // Only the mapping tells whether a file is persistent memory, and the store has it.
        let memory = match self.memory.medium {
            MediumKind::Private => Memory::Private,
            MediumKind::Shm => Memory::Shm,
            MediumKind::Hugetlb => Memory::Hugetlb,
            MediumKind::Pmem | MediumKind::File => Memory::File,
        };
        let (must_survive, write_through) = (&self.must_survive, self.write_through);
        let facts = Facts { memory, power, must_survive, write_through };
        verdict_of(&format!("table {name}"), &facts)
    }
}

/// What a class means to a store.
pub fn durability_of(verdict: &Verdict) -> Durability {
    match verdict.class {
        Class::Memory => Durability::Memory,
        Class::Disk => Durability::Disk,
    }
}

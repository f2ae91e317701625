//! `[snapshot.NAME]`: snapshots of machines that the server keeps.
//!
//! Promise: as for disks, whose memory it has; every disk that it takes is one of the server's.
//! Never: allows a user that the file does not name, but the one who runs the keeper.

use crate::access::{clients_default, uids_default};
use crate::claims::{Failure, MediumKind};
use crate::kinds::disk::DiskConfig;
use crate::kinds::disk::DiskMemory;
use crate::regions::region_of;
use crate::section::{Section, region};
use crate::sizes::Size;
use crate::values::{Way, must_survive_default};
use holdfast_snapshot::STORE_BYTES_MIN;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// `[snapshot.NAME]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotConfig {
    /// Where its region is. Its `shm` file is `/dev/shm/holdfast/snapshot-NAME` unless it says
    /// otherwise.
    pub memory: DiskMemory,
    /// Bytes for all snapshots together: a multiple of 4096. It counts only when it is made.
    pub size: Size,
    /// The disks that a snapshot takes at one instant.
    #[serde(default)]
    pub disks: Vec<String>,
    /// The failures that a snapshot must survive.
    #[serde(default = "must_survive_default")]
    pub must_survive: Vec<Failure>,
    /// The users that may be clients; the keeper's own, unless it says otherwise.
    #[serde(default = "uids_default")]
    pub allow_uids: Vec<u32>,
    /// Most clients at a time.
    #[serde(default = "clients_default")]
    pub clients_max: u32,
}

impl Section for SnapshotConfig {
    const KIND: &'static str = "snapshot";

    fn complete(&mut self, name: &str) -> Result<(), String> {
        if (self.memory.medium, &self.memory.path) == (MediumKind::Shm, &None) {
            self.memory.path = Some(region_of(&format!("snapshot-{name}")));
        }
        self.store().complete(name)?;
        if self.size.0 < STORE_BYTES_MIN {
            return Err(format!("size = \"{}\" is less than {STORE_BYTES_MIN}B", self.size));
        }
        Ok(())
    }

    fn paths(&self) -> Vec<(&'static str, &Path)> {
        region(self.memory.path.as_deref()).collect()
    }
}

impl SnapshotConfig {
    /// Whether the server has every disk that a snapshot takes.
    pub(crate) fn check_disks(&self, disks: &BTreeMap<String, DiskConfig>) -> Result<(), String> {
        self.disks.iter().try_for_each(|disk| match disks.get(disk) {
            None => Err(format!("disks: there is no [disk.{disk}]")),
            Some(found) if found.way == Way::Direct => Err(format!(
                "disks: the server takes snapshots, and does not have [disk.{disk}], whose way is \
                 \"direct\"; set way = \"queue\" there, or leave the disk out"
            )),
            Some(_) => Ok(()),
        })
    }

    /// The disk that has the snapshots. It has no users but the service.
    pub fn store(&self) -> DiskConfig {
        DiskConfig {
            memory: self.memory.clone(),
            size: self.size,
            way: Way::Queue,
            nbd: Vec::new(),
            nbd_tls: None,
            vhost_user: None,
            mount: None,
            ublk: None,
            must_survive: self.must_survive.clone(),
            allow_uids: Some(self.allow_uids.clone()),
            clients_max: Some(self.clients_max),
        }
    }
}

#[cfg(test)]
mod tests;

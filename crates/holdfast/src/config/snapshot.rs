//! `[snapshot.NAME]`: snapshots of machines that the server keeps.
//!
//! Promise: as for disks, whose memory it has; every disk that it takes is one of the server's.
//! Never: allows a user that the file does not name, but the one who runs the keeper.

use super::disk::DiskMemory;
use super::served::{clients_default, uids_default};
use super::{DiskConfig, Failure, MediumKind, Way, must_survive_default, region_of};
use crate::sizes::Size;
use holdfast_snapshot::STORE_BYTES_MIN;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[snapshot.NAME]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotConfig {
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

impl SnapshotConfig {
    /// Fills in what has a default that depends on the name, then checks every field.
    pub(super) fn complete(
        &mut self,
        name: &str,
        disks: &BTreeMap<String, DiskConfig>,
    ) -> Result<(), String> {
        if (self.memory.medium, &self.memory.path) == (MediumKind::Shm, &None) {
            self.memory.path = Some(region_of(&format!("snapshot-{name}")));
        }
        self.store().complete(name)?;
        if self.size.0 < STORE_BYTES_MIN {
            return Err(format!("size = \"{}\" is less than {STORE_BYTES_MIN}B", self.size));
        }
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
    pub(crate) fn store(&self) -> DiskConfig {
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

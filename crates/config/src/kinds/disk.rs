//! `[disk.NAME]`: disks in durable memory, which the server serves or a front end has alone.
//!
//! Promise: as for volumes. A disk whose memory does not survive what it must is refused: it has no
//! other place to write to.
//! Never: allows a user that the file does not name, but the one who runs the keeper.

use crate::access::{check_access, clients_default, uids_default};
use crate::claims::{Class, Facts, Gap, Memory, PowerSource, Verdict};
use crate::claims::{Failure, MediumKind};
use crate::exit::Exit;
use crate::nbd_tls;
use crate::nbd_tls::NbdTls;
use crate::problem::{Outcome, Problem};
use crate::regions::region_of;
use crate::section::{Section, region};
use crate::sizes::Size;
use crate::sockets::{Address, Protocol, check_ublk, check_vhost_user, sockets_of};
use crate::values::{Way, check_path, medium_at, must_survive_default, verdict_of};
use holdfast_front::ublk::UblkConfig;
use holdfast_memory::Medium;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Sizes of a disk are multiples of this.
const BLOCK_BYTES: u64 = 4096;

/// `[disk.NAME]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskConfig {
    /// Where its region is. Its `shm` file is `/dev/shm/holdfast/disk-NAME` unless it says
    /// otherwise.
    pub memory: DiskMemory,
    /// Bytes of the disk: a multiple of 4096. It counts only when the disk is made.
    pub size: Size,
    /// How its front end reaches it. Without a server in between nobody else does.
    #[serde(default = "way_default")]
    pub way: Way,
    /// Where it is a network block device.
    #[serde(default)]
    pub nbd: Vec<Address>,
    /// Who may be a client there; without it, whoever reaches the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbd_tls: Option<NbdTls>,
    /// The path of the socket at which it is a hypervisor's.
    #[serde(default, rename = "vhost-user")]
    pub vhost_user: Option<PathBuf>,
    /// The directory in which it is a file, under its own name.
    #[serde(default)]
    pub mount: Option<PathBuf>,
    /// N, if it is the block device /dev/ublkbN of this machine.
    #[serde(default)]
    pub ublk: Option<u32>,
    /// The failures that acknowledgements must survive.
    #[serde(default = "must_survive_default")]
    pub must_survive: Vec<Failure>,
    /// The users that may be clients: see [`Self::uids`].
    #[serde(default)]
    pub allow_uids: Option<Vec<u32>>,
    /// Most clients at a time: see [`Self::clients_max`].
    #[serde(default)]
    pub clients_max: Option<u32>,
}

/// A disk is shared unless it says otherwise.
pub fn way_default() -> Way {
    Way::Queue
}

/// `memory = { ... }` of a disk, whose region is as large as the disk needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskMemory {
    /// What the region is made of.
    pub medium: MediumKind,
    /// The file or device. Only `shm` has a default.
    #[serde(default)]
    pub path: Option<PathBuf>,
}

impl Section for DiskConfig {
    const KIND: &'static str = "disk";

    fn complete(&mut self, name: &str) -> Result<(), String> {
        let memory = &mut self.memory;
        match (memory.medium, &memory.path) {
            (MediumKind::Private, _) => {
                return Err(
                    "memory.medium: a disk in private memory would end with the server".into()
                );
            }
            (_, Some(path)) => check_path("memory.path", path)?,
            (MediumKind::Shm, None) => {
                memory.path = Some(region_of(&format!("disk-{name}")));
            }
            (medium, None) => {
                let medium = medium.word();
                return Err(format!("memory.path is missing; medium = \"{medium}\" needs it"));
            }
        }
        if self.size.0 == 0 || !self.size.0.is_multiple_of(BLOCK_BYTES) {
            return Err(format!("size = \"{}\" is not a multiple of 4KiB", self.size));
        }
        self.mount.as_deref().map_or(Ok(()), |mount| check_path("mount", mount))?;
        check_vhost_user(self.vhost_user.as_deref())?;
        nbd_tls::check(self.nbd_tls.as_ref(), &self.nbd)?;
        check_ublk(self.ublk)?;
        match self.way {
            Way::Queue => self.check_clients(),
            Way::Direct => self.check_alone(),
        }
    }

    fn paths(&self) -> Vec<(&'static str, &Path)> {
        let nbd = self.nbd.iter().filter_map(|address| address.path()).map(|path| ("nbd", path));
        let vhost_user = self.vhost_user.as_deref().map(|path| ("vhost-user", path));
        let mount = self.mount.as_deref().map(|path| ("mount", path));
        region(self.memory.path.as_deref()).chain(nbd).chain(vhost_user).chain(mount).collect()
    }

    fn nbd(&self) -> &[Address] {
        &self.nbd
    }

    fn ublk(&self) -> Option<u32> {
        self.ublk
    }
}

impl DiskConfig {
    /// The server's clients, the front end among them, have to be let in.
    fn check_clients(&self) -> Result<(), String> {
        let uids = self.uids();
        let is_own_client = uids_default().iter().all(|uid| uids.contains(uid));
        if self.has_front_end() && !is_own_client {
            return Err(
                "allow_uids lacks the user who runs the keeper, and so the front end that \
                        mount, nbd, vhost-user and ublk ask for"
                    .into(),
            );
        }
        check_access(&uids, self.clients_max())
    }

    /// Whoever has a disk alone is its front end.
    fn check_alone(&self) -> Result<(), String> {
        let uids = self.allow_uids.as_ref().map(|_| "allow_uids");
        let about_clients = uids.or(self.clients_max.map(|_| "clients_max"));
        match about_clients {
            Some(key) => Err(format!(
                "{key} is about clients of the server, and with way = \"direct\" there are none; \
                 leave it out, or set way = \"queue\""
            )),
            None if !self.has_front_end() => Err("way = \"direct\" is for a front end, and there \
                                                  is neither mount nor nbd nor vhost-user nor ublk"
                .into()),
            None => Ok(()),
        }
    }

    /// The users that may be clients; the keeper's own, unless it says otherwise.
    pub fn uids(&self) -> Vec<u32> {
        self.allow_uids.clone().unwrap_or_else(uids_default)
    }

    /// Most clients of this disk at a time.
    pub fn clients_max(&self) -> u32 {
        self.clients_max.unwrap_or_else(clients_default)
    }

    /// Where users of the disk connect, besides at the server.
    pub fn sockets(&self) -> Vec<(Protocol, Address)> {
        sockets_of(&self.nbd, self.vhost_user.as_deref())
    }

    /// The block device that the disk of this name is, if it is one.
    pub fn device_of(&self, name: &str) -> Option<UblkConfig> {
        Some(UblkConfig { id: self.ublk?, name: format!("disk {name}") })
    }

    /// Whether it has users who are no clients of the server.
    pub fn has_front_end(&self) -> bool {
        self.mount.is_some() || !self.sockets().is_empty() || self.ublk.is_some()
    }

    /// The region's medium as the memory crate knows it.
    pub fn medium(&self) -> Medium {
        medium_at(self.memory.medium, self.memory.path.as_deref())
    }

    /// What acknowledgements mean on the memory that is really there.
    pub fn verdict_on(&self, whose: &str, memory: Memory, power: PowerSource) -> Outcome<Verdict> {
        let must_survive = &self.must_survive;
        let facts = Facts { memory, power, must_survive, write_through: false };
        let verdict = verdict_of(whose, &facts)?;
        if verdict.class == Class::Memory {
            return Ok(verdict);
        }
        let gap = |gap: &Gap| format!("{} ({})", gap.failure.word(), gap.why);
        let gaps: Vec<String> = verdict.missing.iter().filter(|gap| gap.asked).map(gap).collect();
        let why = format!("its memory, all it has, does not survive {}", gaps.join(", "));
        let remedy = "leave that out of must_survive, or choose a medium that survives it";
        Err(Problem::new(Exit::Claims, format!("judging what {whose} survives"), why, remedy))
    }
}

#[cfg(test)]
mod tests;

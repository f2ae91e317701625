//! `[volume.NAME]`: an ordinary directory, file or device, kept by a log.
//!
//! Promise: whoever is to find the volume finds it, and all of them see the same.
//! Never: lets a log lie in what it keeps.

mod block_cache;

use std::path::{Path, PathBuf};

use holdfast_front::ublk::{self, UblkConfig};
use holdfast_log::LogConfig;
use holdfast_memory::Medium;
use serde::{Deserialize, Serialize};

use crate::access;
use crate::claims::{Class, Facts, Failure, MediumKind, Memory, PowerSource, Verdict};
use crate::kinds::log::ServedLogConfig;
use crate::nbd_tls::{self, NbdTls};
use crate::problem::Outcome;
use crate::regions::region_of;
use crate::section::{Section, region};
use crate::sizes::Size;
use crate::sockets::{self, Address, Protocol};
use crate::values::{
    Cache, MemoryConfig, Way, check_path, log_config, must_survive_default, segment_for, verdict_of,
};

const THREADS_MAX: usize = 64;

/// `[volume.NAME]`. It is also what a front end is told, so that a restarted front end works with
/// the settings its volume was attached with, whatever the file says by then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeConfig {
    /// The ordinary directory; the file or device of a block volume.
    pub home: PathBuf,
    /// Where programs see the volume; may be the home itself. A disk can do without.
    #[serde(default)]
    pub mount: Option<PathBuf>,
    /// Where the volume's disk is a network block device.
    #[serde(default)]
    pub nbd: Vec<Address>,
    /// Who may be a client there; without it, whoever reaches the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbd_tls: Option<NbdTls>,
    /// The path of the socket at which the volume's disk is a hypervisor's.
    #[serde(default, rename = "vhost-user")]
    pub vhost_user: Option<PathBuf>,
    /// N, if the volume's disk is the block device /dev/ublkbN of this machine.
    #[serde(default)]
    pub ublk: Option<u32>,
    /// The directory of the log's segment files.
    pub log: PathBuf,
    /// The region.
    pub memory: MemoryConfig,
    /// Bytes of a segment file: a power of two, at most half the ring. A quarter of the ring, but
    /// no more than 16 MiB, unless it says otherwise. It counts only when the log is made.
    #[serde(default)]
    pub segment: Option<Size>,
    /// The failures that acknowledgements must survive.
    #[serde(default = "must_survive_default")]
    pub must_survive: Vec<Failure>,
    /// Acknowledge from disk whatever the memory can.
    #[serde(default)]
    pub write_through: bool,
    /// How the front end reaches the volume's log.
    #[serde(default)]
    pub way: Way,
    /// How the kernel caches file contents. As suits who else sees them, unless it says otherwise:
    /// see [`Self::cache`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// Where blocks of the home are kept, to be warm for the next process too. Its `shm` file is
    /// `/dev/shm/holdfast/cache-NAME` unless it says otherwise.
    #[serde(default)]
    pub block_cache: Option<MemoryConfig>,
    /// Threads that answer file system requests. As many as suit the class, unless it says
    /// otherwise: see [`Self::threads_for`].
    #[serde(default)]
    pub threads: Option<usize>,
}

impl Section for VolumeConfig {
    const KIND: &'static str = "volume";

    fn complete(&mut self, name: &str) -> Result<(), String> {
        if self.memory.medium == MediumKind::Shm && self.memory.path.is_none() {
            self.memory.path = Some(region_of(name));
        }
        self.memory.check()?;
        self.complete_block_cache(name)?;
        let mount = self.mount.as_deref().map(|mount| ("mount", mount));
        for (key, path) in [("home", &*self.home), ("log", &*self.log)].into_iter().chain(mount) {
            check_path(key, path)?;
        }
        self.check_users()?;
        self.segment = Some(segment_for(&self.memory, self.segment)?);
        let has_log = |above: &PathBuf| self.log.starts_with(above);
        if has_log(&self.home) || self.mount.as_ref().is_some_and(has_log) {
            return Err("log lies inside home or mount; a log cannot keep itself".into());
        }
        match self.threads {
            Some(count) if !(1..=THREADS_MAX).contains(&count) => {
                Err(format!("threads = {count} is not in 1..={THREADS_MAX}"))
            }
            _ => Ok(()),
        }
    }

    fn folder(&self) -> Option<(&'static str, &Path)> {
        Some(("log", &self.log))
    }

    fn paths(&self) -> Vec<(&'static str, &Path)> {
        let own_mount = self.mount.as_deref().filter(|mount| *mount != self.home);
        let own_mount = own_mount.map(|mount| ("mount", mount));
        let fixed = [("home", &*self.home), ("log", &*self.log)];
        let cache = self.block_cache.as_ref().and_then(|cache| cache.path.as_deref());
        let cache = cache.map(|path| ("block_cache.path", path));
        let nbd = self.nbd.iter().filter_map(Address::path).map(|path| ("nbd", path));
        let vhost_user = self.vhost_user.as_deref().map(|path| ("vhost-user", path));
        let memory = region(self.memory.path.as_deref()).chain(cache);
        fixed.into_iter().chain(own_mount).chain(memory).chain(nbd).chain(vhost_user).collect()
    }

    fn nbd(&self) -> &[Address] {
        &self.nbd
    }

    fn ublk(&self) -> Option<u32> {
        self.ublk
    }
}

impl VolumeConfig {
    /// Somebody has to find the volume, and all see the same.
    fn check_users(&self) -> Result<(), String> {
        sockets::check_vhost_user(self.vhost_user.as_deref())?;
        nbd_tls::check(self.nbd_tls.as_ref(), &self.nbd)?;
        sockets::check_ublk(self.ublk)?;
        if self.mount.is_none() && !self.is_shown_as_disk() {
            let keys = "neither mount nor nbd nor vhost-user nor ublk";
            return Err(format!("{keys} says where the volume is to be found"));
        }
        let hides = self.is_shown_as_disk() && self.cache() == Cache::WriteThrough;
        if self.mount.is_some() && hides {
            return Err("cache = \"write-through\" would hide what clients of nbd, vhost-user or \
                        ublk write from who reads through mount; set \"direct\", or leave mount \
                        out"
            .into());
        }
        Ok(())
    }

    /// True if others than the kernel write what programs may read through the mount.
    pub fn is_shown_as_disk(&self) -> bool {
        !self.sockets().is_empty() || self.ublk.is_some()
    }

    /// How the kernel caches file contents: not at all where somebody else changes them, or where
    /// the volume has a cache of its own.
    pub fn cache(&self) -> Cache {
        let suits = match self.is_shown_as_disk() || self.block_cache.is_some() {
            true => Cache::Direct,
            false => Cache::WriteThrough,
        };
        self.cache.unwrap_or(suits)
    }

    /// Where users of the volume's disk connect.
    pub fn sockets(&self) -> Vec<(Protocol, Address)> {
        sockets::sockets_of(&self.nbd, self.vhost_user.as_deref())
    }

    /// The block device that the disk of the volume of this name is, if it is one.
    pub fn device_of(&self, name: &str) -> Option<UblkConfig> {
        Some(UblkConfig { id: self.ublk?, name: format!("volume {name}") })
    }

    /// The region's medium as the memory crate knows it.
    pub fn medium(&self) -> Medium {
        self.memory.medium()
    }

    /// Where the volume is to be found while it is attached, for people.
    pub fn found_at(&self) -> String {
        let sockets = self.sockets();
        let sockets = sockets.iter().map(|(_, at)| at.to_string());
        let device = self.ublk.map(|id| ublk::block_path(id).display().to_string());
        let addresses: Vec<String> = sockets.chain(device).collect();
        let attached = format!("attached at {}", addresses.join(" and "));
        match &self.mount {
            Some(mount) if addresses.is_empty() => format!("mounted at {}", mount.display()),
            Some(mount) => format!("mounted at {}, and {attached}", mount.display()),
            None => attached,
        }
    }

    /// The volume's log as the server has it: for one front end, which runs as the keeper does.
    pub fn served(&self) -> ServedLogConfig {
        ServedLogConfig {
            log: self.log.clone(),
            memory: self.memory.clone(),
            segment: self.segment,
            must_survive: self.must_survive.clone(),
            write_through: self.write_through,
            allow_uids: access::uids_default(),
            clients_max: 1,
        }
    }

    /// The log's sizes; known once [`Self::complete`] has run.
    pub fn log_config(&self) -> LogConfig {
        LogConfig {
            dirty_bytes_max: self.dirty_bytes_max(),
            ..log_config(&self.memory, self.segment)
        }
    }

    /// Most bytes that may wait for the log's device. With a power source it is what the hold-up
    /// covers; without one nothing depends on it, and the ring is the bound.
    pub fn dirty_bytes_max(&self) -> u64 {
        self.memory.size.0
    }

    /// Threads for a class. In class Memory no request waits for a device, and one thread that
    /// never yields is fastest; in class Disk several wait together, so that they share a flush.
    pub fn threads_for(&self, class: Class) -> usize {
        self.threads.unwrap_or(match class {
            Class::Memory => 1,
            Class::Disk => 8,
        })
    }

    /// What acknowledgements of this volume mean on the memory that was found.
    pub fn verdict_on(&self, name: &str, memory: Memory, power: PowerSource) -> Outcome<Verdict> {
        let facts = Facts {
            memory,
            power,
            must_survive: &self.must_survive,
            write_through: self.write_through,
        };
        verdict_of(&format!("volume {name}"), &facts)
    }
}

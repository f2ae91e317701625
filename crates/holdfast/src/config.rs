//! The configuration file.
//!
//! Promise: what is returned was checked wherever a file can be checked: known keys, sizes, names,
//! absolute paths, and no two that lead to one place. Every refusal names file, volume and key.
//! Never: fills in what the operator must decide, or opens anything but the one file.

mod block_cache;
mod disk;
mod nbd_tls;
mod regions;
mod section;
mod served;
mod snapshot;
mod sockets;
mod standby;
mod table;

pub(crate) use disk::{DiskConfig, way_default};
pub(crate) use nbd_tls::NbdTls;
pub(crate) use regions::region_of;
pub(crate) use section::Section;
pub(crate) use served::{ServedLogConfig, ServerConfig};
pub(crate) use snapshot::SnapshotConfig;
pub(crate) use sockets::{Address, Protocol};
pub(crate) use standby::StandbyConfig;
pub(crate) use table::{TableConfig, durability_of};

use crate::claims::{Class, Facts, Failure, MediumKind, Memory, PowerSource, Verdict, judge};
use crate::exit::Exit;
use crate::places::shared;
use crate::problem::{Outcome, Problem};
use crate::sizes::Size;
use holdfast_client::protocol::{LOG_PREFIX, VOLUME_PREFIX};
use holdfast_front::ublk::{self, UblkConfig};
use holdfast_log::{LogConfig, SEGMENTS_MAX};
use holdfast_memory::Medium;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where the keeper listens unless the configuration says otherwise.
pub(crate) const SOCKET_DEFAULT: &str = "/run/holdfast/control.sock";

/// Longest volume name: it becomes part of file names and of the mount's source.
const NAME_BYTES_MAX: usize = 32;
/// A front end hands over up to 1 MiB at once, as one frame, and a frame takes at most half of a
/// segment.
const SEGMENT_BYTES_MIN: u64 = 4 << 20;
const RING_BYTES_MIN: u64 = 2 * SEGMENT_BYTES_MIN;
const SEGMENT_BYTES_MAX: u64 = 1 << 30;
const SEGMENT_BYTES_DEFAULT: u64 = 16 << 20;
const THREADS_MAX: usize = 64;

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The keeper's own settings.
    #[serde(default)]
    pub keeper: KeeperConfig,
    /// The volumes by name.
    #[serde(default, rename = "volume")]
    pub volumes: BTreeMap<String, VolumeConfig>,
    /// The server's own settings.
    #[serde(default)]
    pub server: ServerConfig,
    /// The logs that the server serves, by name.
    #[serde(default, rename = "log")]
    pub logs: BTreeMap<String, ServedLogConfig>,
    /// The disks in durable memory, by name.
    #[serde(default, rename = "disk")]
    pub disks: BTreeMap<String, DiskConfig>,
    /// The tables that the server serves, by name.
    #[serde(default, rename = "table")]
    pub tables: BTreeMap<String, TableConfig>,
    /// The snapshots that the server keeps, by the name of their service.
    #[serde(default, rename = "snapshot")]
    pub snapshots: BTreeMap<String, SnapshotConfig>,
    /// The other hosts that could serve all this, if there are any.
    #[serde(default)]
    pub standby: Option<StandbyConfig>,
}

/// `[keeper]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeeperConfig {
    /// The control socket. Its lock file stands beside it.
    #[serde(default = "socket_default")]
    pub socket: PathBuf,
    /// What powers the machine when the mains fail.
    #[serde(default)]
    pub power: PowerSource,
}

/// `[volume.NAME]`. It is also what a front end is told, so that a restarted front end works with
/// the settings its volume was attached with, whatever the file says by then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VolumeConfig {
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

/// `memory = { ... }`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryConfig {
    /// What the region is made of.
    pub medium: MediumKind,
    /// Bytes of the ring, a power of two; of a block cache, the bytes of its blocks.
    pub size: Size,
    /// The file or device. Only `shm` has a default: `/dev/shm/holdfast/NAME`.
    #[serde(default)]
    pub path: Option<PathBuf>,
}

/// How a front end reaches the memory of what it serves, and a volume's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Way {
    /// It has it itself: the fastest way.
    #[default]
    Direct,
    /// The server has it, and is asked through a queue: a front end that goes wrong reaches nothing
    /// but its own session.
    Queue,
}

/// How the kernel caches the contents of a mounted volume's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cache {
    /// Not at all: each read and write reaches the front end, and each write as it is.
    Direct,
    /// Reads are cached, writes reach the front end.
    WriteThrough,
}

impl Default for KeeperConfig {
    fn default() -> KeeperConfig {
        KeeperConfig { socket: socket_default(), power: PowerSource::None }
    }
}

fn socket_default() -> PathBuf {
    SOCKET_DEFAULT.into()
}

fn must_survive_default() -> Vec<Failure> {
    Failure::DEFAULT.to_vec()
}

impl Config {
    /// Reads and checks the file.
    pub(crate) fn load(path: &Path) -> Outcome<Config> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let what = format!("reading the configuration {}", path.display());
            let remedy = match error.kind() {
                ErrorKind::PermissionDenied => "run as a user who may read it, such as root",
                _ => "write it, or name another with --config PATH",
            };
            Problem::new(Exit::Usage, what, error, remedy)
        })?;
        let checked = Config::parse(&text).and_then(|config| {
            config.check_no_place_twice()?;
            Ok(config)
        });
        checked.map_err(|why| {
            let what = format!("understanding the configuration {}", path.display());
            Problem::new(Exit::Usage, what, why, "correct the file; nothing was changed")
        })
    }

    /// The configuration that the text states. The error is a sentence that names the key.
    pub(crate) fn parse(text: &str) -> Result<Config, String> {
        let mut config: Config =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        for (name, volume) in &mut config.volumes {
            let named = |why| format!("[volume.{name}]: {why}");
            check_name(name).map_err(named)?;
            volume.complete(name).map_err(named)?;
        }
        let keeper = check_path("socket", &config.keeper.socket);
        keeper.map_err(|why| format!("[keeper]: {why}"))?;
        config.server.check().map_err(|why| format!("[server]: {why}"))?;
        let standby = config.standby.as_ref().map_or(Ok(()), StandbyConfig::check);
        standby.map_err(|why| format!("[standby]: {why}"))?;
        for (name, log) in &mut config.logs {
            let named = |why| format!("[log.{name}]: {why}");
            check_name(name).map_err(named)?;
            log.complete(name).map_err(named)?;
        }
        for (name, disk) in &mut config.disks {
            let named = |why| format!("[disk.{name}]: {why}");
            check_name(name).map_err(named)?;
            disk.complete(name).map_err(named)?;
        }
        for (name, table) in &mut config.tables {
            let named = |why| format!("[table.{name}]: {why}");
            check_name(name).map_err(named)?;
            table.complete(name).map_err(named)?;
        }
        for (name, snapshot) in &mut config.snapshots {
            let named = |why| format!("[snapshot.{name}]: {why}");
            check_name(name).map_err(named)?;
            snapshot.complete(name, &config.disks).map_err(named)?;
        }
        config.check_no_path_twice()?;
        config.check_no_port_twice()?;
        config.check_no_device_twice()?;
        Ok(config)
    }

    /// The volume of that name.
    pub(crate) fn volume(&self, name: &str) -> Outcome<&VolumeConfig> {
        named("volume", &self.volumes, name)
    }

    /// The served log of that name.
    pub(crate) fn log(&self, name: &str) -> Outcome<&ServedLogConfig> {
        named("log", &self.logs, name)
    }

    /// The disk of that name.
    pub(crate) fn disk(&self, name: &str) -> Outcome<&DiskConfig> {
        named("disk", &self.disks, name)
    }

    /// The tables of that name.
    pub(crate) fn table(&self, name: &str) -> Outcome<&TableConfig> {
        named("table", &self.tables, name)
    }

    /// The service of snapshots of that name.
    pub(crate) fn snapshot(&self, name: &str) -> Outcome<&SnapshotConfig> {
        named("snapshot", &self.snapshots, name)
    }

    /// Whether the server has anything for clients of its own.
    pub(crate) fn serves_programs(&self) -> bool {
        let has_data = !(self.logs.is_empty() && self.tables.is_empty());
        has_data || self.served_disks().next().is_some() || !self.snapshots.is_empty()
    }

    /// The disks that the server has.
    pub(crate) fn served_disks(&self) -> impl Iterator<Item = (&String, &DiskConfig)> {
        self.disks.iter().filter(|(_, disk)| disk.way == Way::Queue)
    }

    /// Every log that the server has, by the full name of its service.
    pub(crate) fn services(&self) -> Vec<(String, ServedLogConfig)> {
        let logs = self.logs.iter();
        let logs = logs.map(|(name, log)| (format!("{LOG_PREFIX}{name}"), log.clone()));
        let queued = self.volumes.iter().filter(|(_, volume)| volume.way == Way::Queue);
        let volumes =
            queued.map(|(name, volume)| (format!("{VOLUME_PREFIX}{name}"), volume.served()));
        logs.chain(volumes).collect()
    }

    /// The memory of everything that is configured.
    pub(crate) fn media(&self) -> impl Iterator<Item = Medium> {
        let logs = self.logs.values().map(|it| it.memory.medium());
        let volumes = self.volumes.values().map(VolumeConfig::medium);
        let disks = self.disks.values().map(DiskConfig::medium);
        let tables = self.tables.values().map(|it| it.memory.medium());
        logs.chain(volumes).chain(disks).chain(tables)
    }

    /// Two that share a directory would each apply, or take, what is the other's.
    fn check_no_path_twice(&self) -> Result<(), String> {
        let mut seen: BTreeMap<&Path, String> = BTreeMap::new();
        for (key, path) in self.paths() {
            match seen.get(path) {
                Some(other) => return Err(format!("{key} = {path:?} is already {other}")),
                None => seen.insert(path, key),
            };
        }
        Ok(())
    }

    /// [`Self::check_no_path_twice`] by where the paths lead on this machine. A volume may be
    /// mounted over its home.
    fn check_no_place_twice(&self) -> Result<(), String> {
        let paths = self.paths();
        let over_its_home = |one: &str, other: &str| {
            let home = one.strip_suffix(" home");
            home.is_some() && home == other.strip_suffix(" mount")
        };
        shared(&paths, over_its_home).map_or(Ok(()), |(one, other)| {
            let ((first, led), (key, path)) = (&paths[one], &paths[other]);
            Err(format!("{key} = {path:?} leads where {first} = {led:?} does"))
        })
    }

    /// A port leads to one disk.
    fn check_no_port_twice(&self) -> Result<(), String> {
        let volumes = self.volumes.iter().map(|(name, of)| (format!("volume.{name}"), &of.nbd));
        let disks = self.disks.iter().map(|(name, of)| (format!("disk.{name}"), &of.nbd));
        let mut seen: BTreeMap<&Address, String> = BTreeMap::new();
        for (whose, addresses) in volumes.chain(disks) {
            for address in addresses.iter().filter(|address| address.path().is_none()) {
                if let Some(other) = seen.insert(address, whose.clone()) {
                    return Err(format!("[{whose}] nbd = \"{address}\" is already [{other}] nbd"));
                }
            }
        }
        Ok(())
    }

    /// A device is one disk.
    fn check_no_device_twice(&self) -> Result<(), String> {
        let volumes = self.volumes.iter().map(|(name, of)| (format!("volume.{name}"), of.ublk));
        let disks = self.disks.iter().map(|(name, of)| (format!("disk.{name}"), of.ublk));
        let mut seen: BTreeMap<u32, String> = BTreeMap::new();
        for (whose, id) in volumes.chain(disks) {
            let Some(id) = id else { continue };
            if let Some(other) = seen.insert(id, whose.clone()) {
                return Err(format!("[{whose}] ublk = {id} is already [{other}] ublk"));
            }
        }
        Ok(())
    }

    /// Every path that belongs to one volume, log, disk or socket alone, and its place in the file.
    fn paths(&self) -> Vec<(String, &Path)> {
        let mut paths: Vec<(String, &Path)> = vec![
            ("[keeper] socket".to_owned(), &self.keeper.socket),
            ("[server] socket".to_owned(), &self.server.socket),
        ];
        for (name, volume) in &self.volumes {
            let own_mount = volume.mount.as_deref().filter(|mount| *mount != volume.home);
            let own_mount = own_mount.map(|mount| ("mount", mount));
            let fixed = [("home", &*volume.home), ("log", &*volume.log)];
            let region = volume.memory.path.as_deref().map(|path| ("memory.path", path));
            let cache = volume.block_cache.as_ref().and_then(|cache| cache.path.as_deref());
            let cache = cache.map(|path| ("block_cache.path", path));
            let nbd = volume.nbd.iter().filter_map(Address::path).map(|path| ("nbd", path));
            let vhost_user = volume.vhost_user.as_deref().map(|path| ("vhost-user", path));
            let sockets = nbd.chain(vhost_user);
            let all = fixed.into_iter().chain(own_mount).chain(region).chain(cache).chain(sockets);
            paths.extend(all.map(|(key, path)| (format!("[volume.{name}] {key}"), path)));
        }
        paths.extend(paths_of(&self.logs));
        paths.extend(paths_of(&self.disks));
        paths.extend(paths_of(&self.tables));
        paths.extend(paths_of(&self.snapshots));
        paths
    }
}

/// Every path of the sections of a kind, and its place in the file.
fn paths_of<T: Section>(sections: &BTreeMap<String, T>) -> impl Iterator<Item = (String, &Path)> {
    sections.iter().flat_map(|(name, section)| {
        let place = move |key| format!("[{}.{name}] {key}", T::KIND);
        section.paths().into_iter().map(move |(key, path)| (place(key), path))
    })
}

/// The section of that name; otherwise says which there are.
fn named<'a, T>(kind: &str, sections: &'a BTreeMap<String, T>, name: &str) -> Outcome<&'a T> {
    sections.get(name).ok_or_else(|| {
        let known: Vec<&str> = sections.keys().map(String::as_str).collect();
        let why = format!("the configuration has no [{kind}.{name}]");
        let remedy = match known.is_empty() {
            true => "add it to the configuration".to_owned(),
            false => format!("add it, or name one of: {}", known.join(", ")),
        };
        Problem::new(Exit::Usage, format!("finding {kind} {name}"), why, remedy)
    })
}

impl VolumeConfig {
    /// Fills in what has a default that depends on the name, then checks every field.
    pub(crate) fn complete(&mut self, name: &str) -> Result<(), String> {
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
    pub(crate) fn is_shown_as_disk(&self) -> bool {
        !self.sockets().is_empty() || self.ublk.is_some()
    }

    /// How the kernel caches file contents: not at all where somebody else changes them, or where
    /// the volume has a cache of its own.
    pub(crate) fn cache(&self) -> Cache {
        let suits = match self.is_shown_as_disk() || self.block_cache.is_some() {
            true => Cache::Direct,
            false => Cache::WriteThrough,
        };
        self.cache.unwrap_or(suits)
    }

    /// Where users of the volume's disk connect.
    pub(crate) fn sockets(&self) -> Vec<(Protocol, Address)> {
        sockets::sockets_of(&self.nbd, self.vhost_user.as_deref())
    }

    /// The block device that the disk of the volume of this name is, if it is one.
    pub(crate) fn device_of(&self, name: &str) -> Option<UblkConfig> {
        Some(UblkConfig { id: self.ublk?, name: format!("volume {name}") })
    }

    /// The region's medium as the memory crate knows it.
    pub(crate) fn medium(&self) -> Medium {
        self.memory.medium()
    }

    /// Where the volume is to be found while it is attached, for people.
    pub(crate) fn found_at(&self) -> String {
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
    pub(crate) fn served(&self) -> ServedLogConfig {
        ServedLogConfig {
            log: self.log.clone(),
            memory: self.memory.clone(),
            segment: self.segment,
            must_survive: self.must_survive.clone(),
            write_through: self.write_through,
            allow_uids: served::uids_default(),
            clients_max: 1,
        }
    }

    /// The log's sizes; known once [`Self::complete`] has run.
    pub(crate) fn log_config(&self) -> LogConfig {
        LogConfig {
            dirty_bytes_max: self.dirty_bytes_max(),
            ..log_config(&self.memory, self.segment)
        }
    }

    /// Most bytes that may wait for the log's device. With a power source it is what the hold-up
    /// covers; without one nothing depends on it, and the ring is the bound.
    pub(crate) fn dirty_bytes_max(&self) -> u64 {
        self.memory.size.0
    }

    /// Threads for a class. In class Memory no request waits for a device, and one thread that
    /// never yields is fastest; in class Disk several wait together, so that they share a flush.
    pub(crate) fn threads_for(&self, class: Class) -> usize {
        self.threads.unwrap_or(match class {
            Class::Memory => 1,
            Class::Disk => 8,
        })
    }

    /// What acknowledgements of this volume mean on the memory that was found.
    pub(crate) fn verdict_on(
        &self,
        name: &str,
        memory: Memory,
        power: PowerSource,
    ) -> Outcome<Verdict> {
        let facts = Facts {
            memory,
            power,
            must_survive: &self.must_survive,
            write_through: self.write_through,
        };
        verdict_of(&format!("volume {name}"), &facts)
    }
}

/// What acknowledgements mean, or why the claims refuse the configuration.
fn verdict_of(whose: &str, facts: &Facts<'_>) -> Outcome<Verdict> {
    let remedy = "change must_survive in the configuration";
    judge(facts).map_err(|why| claims_problem(whose, why, remedy))
}

/// Claims that cannot be kept.
pub(crate) fn claims_problem(whose: &str, why: String, remedy: &str) -> Problem {
    Problem::new(Exit::Claims, format!("judging what {whose} survives"), why, remedy)
}

impl MemoryConfig {
    /// The medium as the memory crate knows it.
    pub(crate) fn medium(&self) -> Medium {
        medium_at(self.medium, self.path.as_deref())
    }

    fn check(&self) -> Result<(), String> {
        check_power_of_two("memory.size", self.size, RING_BYTES_MIN, 1 << 40)?;
        match (self.medium, &self.path) {
            (MediumKind::Private, Some(_)) => Err("memory.path: private memory has none".into()),
            (MediumKind::Private, None) => Ok(()),
            _ => self.check_place("memory.path"),
        }
    }

    /// Memory that others can find has a path.
    fn check_place(&self, key: &str) -> Result<(), String> {
        match &self.path {
            Some(path) => check_path(key, path),
            None => Err(format!("{key} is missing; medium = \"{}\" needs it", self.medium.word())),
        }
    }
}

/// The medium at a path. Checked: every medium but private memory has one.
fn medium_at(medium: MediumKind, path: Option<&Path>) -> Medium {
    let path = path.unwrap_or(Path::new("")).to_owned();
    match medium {
        MediumKind::Private => Medium::Private,
        MediumKind::Shm => Medium::Shm { path: regions::where_it_is(path) },
        MediumKind::Hugetlb => Medium::HugeTlb { path },
        MediumKind::Pmem => Medium::Pmem { path },
        MediumKind::File => Medium::File { path },
    }
}

/// The segment size that is asked for, or the one that suits the memory.
fn segment_for(memory: &MemoryConfig, asked: Option<Size>) -> Result<Size, String> {
    let suits = (memory.size.0 / 4).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_DEFAULT);
    let segment = asked.unwrap_or(Size(suits));
    check_power_of_two("segment", segment, SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX)?;
    if segment.0 > memory.size.0 / 2 {
        return Err(format!(
            "segment = \"{segment}\" is more than half of memory.size = \"{}\"",
            memory.size
        ));
    }
    Ok(segment)
}

/// The sizes of a log over this memory, once its segment size is known.
fn log_config(memory: &MemoryConfig, segment: Option<Size>) -> LogConfig {
    let segment_bytes = segment.expect("a checked configuration has a segment size").0;
    // As many as the ring covers, and two more: one being filled, one being prepared.
    let segments = memory.size.0 / segment_bytes + 2;
    let segments = u32::try_from(segments).map_or(SEGMENTS_MAX, |n| n.min(SEGMENTS_MAX));
    LogConfig::in_ring(memory.size.0, segment_bytes, segments)
}

fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    match (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(plain) {
        true => Ok(()),
        false => Err(format!("a name has 1 to {NAME_BYTES_MAX} of a-z, 0-9, - and _")),
    }
}

/// Front ends are started elsewhere, so a relative path would mean another place to them.
fn check_path(key: &str, path: &Path) -> Result<(), String> {
    match path.is_absolute() {
        true => Ok(()),
        false => Err(format!("{key} = {path:?} is not an absolute path")),
    }
}

fn check_power_of_two(key: &str, size: Size, min: u64, max: u64) -> Result<(), String> {
    match size.0.is_power_of_two() && (min..=max).contains(&size.0) {
        true => Ok(()),
        false => Err(format!(
            "{key} = \"{size}\" is not a power of two from {} to {}",
            Size(min),
            Size(max)
        )),
    }
}

#[cfg(test)]
mod tests;

//! The configuration file.
//!
//! Promise: what is returned was checked wherever a file can be checked: known keys, sizes, names,
//! absolute paths, and no two that lead to one place. Every refusal names file, volume and key.
//! Never: fills in what the operator must decide, or opens anything but the one file.

use crate::claims::PowerSource;
use crate::exit::Exit;
use crate::kinds::disk::DiskConfig;
use crate::kinds::log::ServedLogConfig;
use crate::kinds::snapshot::SnapshotConfig;
use crate::kinds::table::TableConfig;
use crate::kinds::volume::VolumeConfig;
use crate::power::PowerConfig;
use crate::problem::{Outcome, Problem};
use crate::section::{Section, complete, folders_of, nbd_of, paths_of, ublk_of};
use crate::server::ServerConfig;
use crate::sockets::Address;
use crate::standby::StandbyConfig;
use crate::values::{Way, check_path};
use holdfast_client::protocol::{LOG_PREFIX, VOLUME_PREFIX};
use holdfast_memory::Medium;
use rustix::fs::OFlags;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Which two of these paths lead to one place of the machine, unless the second says that they may.
pub type Shared = fn(&[(String, &Path)], &dyn Fn(&str, &str) -> bool) -> Option<(usize, usize)>;

/// Where the keeper listens unless the configuration says otherwise.
pub const SOCKET_DEFAULT: &str = "/run/holdfast/control.sock";

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
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
    /// What keeps the machine up after the mains have failed, if anything does.
    #[serde(default)]
    pub power: Option<PowerConfig>,
    /// The other hosts that could serve all this, if there are any.
    #[serde(default)]
    pub standby: Option<StandbyConfig>,
    /// The file that says all this, from the root on; none if it was said otherwise.
    #[serde(skip)]
    pub file: Option<PathBuf>,
}

/// `[keeper]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeeperConfig {
    /// The control socket. Its lock file stands beside it.
    #[serde(default = "socket_default")]
    pub socket: PathBuf,
}

impl Default for KeeperConfig {
    fn default() -> KeeperConfig {
        KeeperConfig { socket: socket_default() }
    }
}

fn socket_default() -> PathBuf {
    SOCKET_DEFAULT.into()
}

impl Config {
    /// Reads and checks the file; `shared` looks where its paths lead.
    ///
    /// # Errors
    /// It cannot be read, or something in it is wrong.
    pub fn load(path: &Path, shared: Shared) -> Outcome<Config> {
        let text = read(path).map_err(|error| {
            let what = format!("reading the configuration {}", path.display());
            let remedy = match error.kind() {
                ErrorKind::PermissionDenied => "run as a user who may read it, such as root",
                _ => "write it, or name another with --config PATH",
            };
            Problem::new(Exit::Usage, what, error, remedy)
        })?;
        let checked = Config::parse(&text).and_then(|config| {
            config.check_no_place_twice(shared)?;
            Ok(Config { file: std::path::absolute(path).ok(), ..config })
        });
        checked.map_err(|why| {
            let what = format!("understanding the configuration {}", path.display());
            Problem::new(Exit::Usage, what, why, "correct the file; nothing was changed")
        })
    }

    /// The configuration that the text states. The error is a sentence that names the key.
    pub fn parse(text: &str) -> Result<Config, String> {
        let mut config: Config =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        complete(&mut config.volumes)?;
        let keeper = check_path("socket", &config.keeper.socket);
        keeper.map_err(|why| format!("[keeper]: {why}"))?;
        config.server.check().map_err(|why| format!("[server]: {why}"))?;
        let power = config.power.as_ref().map_or(Ok(()), PowerConfig::check);
        power.map_err(|why| format!("[power]: {why}"))?;
        let standby = config.standby.as_ref().map_or(Ok(()), StandbyConfig::check);
        standby.map_err(|why| format!("[standby]: {why}"))?;
        complete(&mut config.logs)?;
        complete(&mut config.disks)?;
        complete(&mut config.tables)?;
        complete(&mut config.snapshots)?;
        for (name, snapshot) in &config.snapshots {
            let checked = snapshot.check_disks(&config.disks);
            checked.map_err(|why| format!("[snapshot.{name}]: {why}"))?;
        }
        config.check_no_path_twice()?;
        config.check_nothing_inside()?;
        config.check_no_port_twice()?;
        config.check_no_device_twice()?;
        Ok(config)
    }

    /// The volume of that name.
    pub fn volume(&self, name: &str) -> Outcome<&VolumeConfig> {
        named(&self.volumes, name)
    }

    /// What the memory of a volume may rely on. What the server has relies on nothing: who asks it
    /// for a log does not hear what becomes of the power.
    pub fn power_of(&self, volume: &VolumeConfig) -> PowerSource {
        match (&self.power, volume.way) {
            (Some(_), Way::Direct) => PowerSource::Unarmed,
            _ => PowerSource::None,
        }
    }

    /// The served log of that name.
    pub fn log(&self, name: &str) -> Outcome<&ServedLogConfig> {
        named(&self.logs, name)
    }

    /// The disk of that name.
    pub fn disk(&self, name: &str) -> Outcome<&DiskConfig> {
        named(&self.disks, name)
    }

    /// The tables of that name.
    pub fn table(&self, name: &str) -> Outcome<&TableConfig> {
        named(&self.tables, name)
    }

    /// The service of snapshots of that name.
    pub fn snapshot(&self, name: &str) -> Outcome<&SnapshotConfig> {
        named(&self.snapshots, name)
    }

    /// Whether the server has anything for clients of its own.
    pub fn serves_programs(&self) -> bool {
        let has_data = !(self.logs.is_empty() && self.tables.is_empty());
        has_data || self.served_disks().next().is_some() || !self.snapshots.is_empty()
    }

    /// The disks that the server has.
    pub fn served_disks(&self) -> impl Iterator<Item = (&String, &DiskConfig)> {
        self.disks.iter().filter(|(_, disk)| disk.way == Way::Queue)
    }

    /// Every log that the server has, by the full name of its service.
    pub fn services(&self) -> Vec<(String, ServedLogConfig)> {
        let logs = self.logs.iter();
        let logs = logs.map(|(name, log)| (format!("{LOG_PREFIX}{name}"), log.clone()));
        let queued = self.volumes.iter().filter(|(_, volume)| volume.way == Way::Queue);
        let volumes =
            queued.map(|(name, volume)| (format!("{VOLUME_PREFIX}{name}"), volume.served()));
        logs.chain(volumes).collect()
    }

    /// The memory of everything that is configured.
    pub fn media(&self) -> impl Iterator<Item = Medium> {
        let logs = self.logs.values().map(|it| it.memory.medium());
        let volumes = self.volumes.values().map(VolumeConfig::medium);
        let disks = self.disks.values().map(DiskConfig::medium);
        let tables = self.tables.values().map(|it| it.memory.medium());
        logs.chain(volumes).chain(disks).chain(tables)
    }

    /// Where anybody listens, with its section and key.
    pub fn sockets(&self) -> impl Iterator<Item = (String, &Path)> {
        const KEYS: [&str; 3] = ["socket", "nbd", "vhost-user"];
        let is_socket = |key: &str| KEYS.iter().any(|kind| key.ends_with(kind));
        self.paths().into_iter().filter(move |(key, _)| is_socket(key))
    }

    /// What the power source and the drills of this machine are in, with its section and key: what
    /// has to be there whatever becomes of a volume.
    pub fn power_files(&self) -> impl Iterator<Item = (String, &Path)> {
        let file = self.power.iter().filter_map(|it| it.file.as_deref());
        let file = file.map(|path| ("[power] file", path));
        let drills = self.power.iter().map(|it| ("[power] drills", &*it.drills));
        file.chain(drills).map(|(key, path)| (key.to_owned(), path))
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

    /// What a log or a store has in its directory it may replace or remove, whoever put it there.
    fn check_nothing_inside(&self) -> Result<(), String> {
        let paths = self.paths();
        let folders = folders_of(&self.volumes).chain(folders_of(&self.logs));
        for (folder, around) in folders.chain(folders_of(&self.tables)) {
            let inside = paths.iter().find(|(_, path)| *path != around && path.starts_with(around));
            if let Some((key, path)) = inside {
                let why = "has for its own files alone; name a place outside";
                return Err(format!(
                    "{key} = {path:?} lies inside {around:?}, which {folder} {why}"
                ));
            }
        }
        Ok(())
    }

    /// [`Self::check_no_path_twice`] by where the paths lead on this machine. A volume may be
    /// mounted over its home.
    fn check_no_place_twice(&self, shared: Shared) -> Result<(), String> {
        let paths = self.paths();
        let over_its_home = |one: &str, other: &str| {
            let home = one.strip_suffix(" home");
            home.is_some() && home == other.strip_suffix(" mount")
        };
        shared(&paths, &over_its_home).map_or(Ok(()), |(one, other)| {
            let ((first, led), (key, path)) = (&paths[one], &paths[other]);
            Err(format!("{key} = {path:?} leads where {first} = {led:?} does"))
        })
    }

    /// A port leads to one disk.
    fn check_no_port_twice(&self) -> Result<(), String> {
        let mut seen: BTreeMap<&Address, String> = BTreeMap::new();
        for (whose, addresses) in nbd_of(&self.volumes).chain(nbd_of(&self.disks)) {
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
        let mut seen: BTreeMap<u32, String> = BTreeMap::new();
        for (whose, id) in ublk_of(&self.volumes).chain(ublk_of(&self.disks)) {
            let Some(id) = id else { continue };
            if let Some(other) = seen.insert(id, whose.clone()) {
                return Err(format!("[{whose}] ublk = {id} is already [{other}] ublk"));
            }
        }
        Ok(())
    }

    /// Every path that belongs to one volume, log, disk, socket or power source alone, and its
    /// place in the file.
    fn paths(&self) -> Vec<(String, &Path)> {
        let mut paths: Vec<(String, &Path)> = vec![
            ("[keeper] socket".to_owned(), &self.keeper.socket),
            ("[server] socket".to_owned(), &self.server.socket),
        ];
        paths.extend(paths_of(&self.volumes));
        paths.extend(paths_of(&self.logs));
        paths.extend(paths_of(&self.disks));
        paths.extend(paths_of(&self.tables));
        paths.extend(paths_of(&self.snapshots));
        paths.extend(self.power_files());
        paths
    }
}

/// What the file says. Whatever is none may never end, or never come.
fn read(path: &Path) -> io::Result<String> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(nonblocking).open(path)?;
    match file.metadata()?.is_file() {
        true => io::read_to_string(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// The section of that name; otherwise says which there are.
fn named<'a, T: Section>(sections: &'a BTreeMap<String, T>, name: &str) -> Outcome<&'a T> {
    let kind = T::KIND;
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

#[cfg(test)]
mod tests;

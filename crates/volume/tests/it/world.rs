//! A machine with one disk, on it a home and a log, and a region beside it.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_io::fake::{FakeClock, FakeFiles};
use holdfast_io::tree::{Asked, NewNode};
use holdfast_io::{
    Allocation, Change, DirEntry, Files, Held, Kind, Limits, Metadata, OpenFile, OpenHow, Space,
};
use holdfast_log::{CommitError, Log, LogConfig, OpenError};
use holdfast_memory::{Medium, Region, RegionSpec};
use holdfast_volume::{
    Attached, Class, CleanError, DirectVolume, DirectoryVolume, VolumeConfig, VolumeError,
};

pub(crate) const IDENTITY: [u8; 16] = [7; 16];
pub(crate) const RING_BYTES: u64 = 1 << 20;

/// One directory of a larger file system, as a root of its own.
pub(crate) struct Below {
    files: FakeFiles,
    root: &'static str,
    takes_rosters: bool,
}

impl Below {
    pub(crate) fn new(files: &FakeFiles, root: &'static str) -> Arc<Below> {
        Arc::new(Below { files: files.clone(), root, takes_rosters: true })
    }

    /// A home without room for what a volume would keep there for itself.
    pub(crate) fn without_room_for_rosters(files: &FakeFiles, root: &'static str) -> Arc<Below> {
        Arc::new(Below { files: files.clone(), root, takes_rosters: false })
    }

    fn at(&self, path: &Path) -> PathBuf {
        let root = Path::new(self.root);
        if path.as_os_str().is_empty() { root.to_path_buf() } else { root.join(path) }
    }
}

impl Files for Below {
    fn open(&self, path: &Path, how: OpenHow) -> io::Result<Arc<dyn OpenFile>> {
        let is_roster = path.to_string_lossy().contains("/roster-");
        if is_roster && !self.takes_rosters {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.files.open(&self.at(path), how)
    }
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.files.metadata(&self.at(path))
    }
    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.files.read_dir(&self.at(path))
    }
    fn read_link(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.read_link(&self.at(path))
    }
    fn hold(&self, path: &Path) -> io::Result<Box<dyn Held>> {
        self.files.hold(&self.at(path))
    }
    fn make(&self, path: &Path, kind: Kind, mode: u32, rdev: u64) -> io::Result<Box<dyn Held>> {
        self.files.make(&self.at(path), kind, mode, rdev)
    }
    fn make_symlink(&self, path: &Path, target: &[u8]) -> io::Result<()> {
        self.files.make_symlink(&self.at(path), target)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.link(&self.at(from), &self.at(to))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(&self.at(from), &self.at(to))
    }
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        self.files.exchange(&self.at(one), &self.at(other))
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.files.remove_file(&self.at(path))
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.files.remove_dir(&self.at(path))
    }
    fn change(&self, path: &Path, change: &Change) -> io::Result<()> {
        self.files.change(&self.at(path), change)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.files.sync_dir(&self.at(path))
    }
    fn space(&self) -> io::Result<Space> {
        self.files.space()
    }
    fn xattr(&self, path: &Path, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.files.xattr(&self.at(path), name)
    }
    fn xattr_names(&self, path: &Path) -> io::Result<Vec<Vec<u8>>> {
        self.files.xattr_names(&self.at(path))
    }
    fn set_xattr(&self, path: &Path, name: &[u8], value: &[u8]) -> io::Result<()> {
        self.files.set_xattr(&self.at(path), name, value)
    }
    fn remove_xattr(&self, path: &Path, name: &[u8]) -> io::Result<()> {
        self.files.remove_xattr(&self.at(path), name)
    }
    fn sync_all(&self) -> io::Result<()> {
        self.files.sync_all()
    }
    fn has_sync_all(&self) -> bool {
        self.files.has_sync_all()
    }
    fn limits(&self) -> io::Result<Limits> {
        self.files.limits()
    }
    fn allocation(&self) -> io::Result<Allocation> {
        self.files.allocation()
    }
    fn writes_in_place(&self) -> bool {
        self.files.writes_in_place()
    }
}

/// The machine.
pub(crate) struct World {
    pub(crate) files: FakeFiles,
    pub(crate) region: Arc<Region>,
    pub(crate) clock: FakeClock,
}

pub(crate) fn new_region() -> Arc<Region> {
    region_with_roster(1 << 18)
}

fn region_with_roster(roster_bytes: u64) -> Arc<Region> {
    let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes, identity: IDENTITY };
    Arc::new(Region::create(&Medium::Private, &spec).expect("a private region"))
}

/// For who never asks again.
pub(crate) const ONCE: Asked = Asked { request: 1, again: false };

pub(crate) fn config() -> VolumeConfig {
    VolumeConfig { class: Class::Memory, log: LogConfig::in_ring(RING_BYTES, 1 << 16, 4) }
}

/// A volume with its log in this process, for tests that do what its threads would do.
pub(crate) struct Opened(DirectVolume);

impl Deref for Opened {
    type Target = DirectoryVolume;

    fn deref(&self) -> &DirectoryVolume {
        &self.0.volume
    }
}

impl Opened {
    pub(crate) fn log(&self) -> &Log {
        &self.0.log
    }

    /// One step of the drainer. Returns the bytes moved.
    pub(crate) fn drain_step(&self) -> Result<u64, CommitError> {
        Ok(self.log().drain()?.bytes)
    }

    pub(crate) fn detach(&self) -> Result<(), CleanError> {
        self.0.detach()
    }
}

impl World {
    /// A machine with an empty home and a new log.
    pub(crate) fn new(seed: u64) -> World {
        let files = FakeFiles::new(seed);
        for directory in ["home", "log"] {
            files.make_dir(Path::new(directory), 0o755).expect("a new disk");
        }
        files.sync_dir(Path::new("")).expect("a new disk");
        Log::create(&*Below::new(&files, "log"), IDENTITY, &config().log).expect("a new log");
        World { files, region: new_region(), clock: FakeClock::default() }
    }

    /// The same with a region that has room for a few names only.
    pub(crate) fn with_small_roster(seed: u64) -> World {
        World { region: region_with_roster(300), ..World::new(seed) }
    }

    pub(crate) fn home(&self) -> Arc<Below> {
        Below::new(&self.files, "home")
    }

    pub(crate) fn open(&self) -> Result<(Opened, Attached), VolumeError> {
        let log = Below::new(&self.files, "log");
        let clock = Arc::new(self.clock.clone());
        let opened = DirectVolume::open(self.home(), log, self.region.clone(), clock, config())?;
        let attached = opened.attached;
        Ok((Opened(opened), attached))
    }

    /// The log alone, for who puts something between it and a volume.
    pub(crate) fn open_log(&self) -> Arc<Log> {
        self.try_open_log().expect("a log made here")
    }

    /// The same where the power may be gone.
    pub(crate) fn try_open_log(&self) -> Result<Arc<Log>, OpenError> {
        let (files, clock) = (Below::new(&self.files, "log"), Arc::new(self.clock.clone()));
        let opened = Log::open(files, self.region.clone(), clock, config().log)?;
        Ok(Arc::new(opened.0))
    }

    /// The machine after the process has died and its memory has gone: the disk is as it was.
    pub(crate) fn without_memory(self) -> World {
        World { region: new_region(), ..self }
    }

    /// The machine after a power cut: what the disk kept, and an empty region.
    pub(crate) fn after_power_cut(&self, seed: u64) -> World {
        let files = self.files.after_power_cut(seed);
        World { files, region: new_region(), clock: self.clock.clone() }
    }
}

/// What root makes, with no mask.
pub(crate) const fn new_node(kind: Kind, mode: u32) -> NewNode<'static> {
    NewNode { kind, mode, umask: 0, uid: 0, gid: 0, rdev: 0, target: b"" }
}

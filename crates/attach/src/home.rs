//! What a home makes of its volume: a directory of names, or a disk.
//!
//! Promise: the only place that asks which of the two it is, and on what.
//! Never: mounts anything.

use crate::bond::Wearer;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::real::{RealFiles, file_from_fd};
use holdfast_io::tree::Tree;
use holdfast_io::{Blocks, Files, OneFile};
use holdfast_log::Marks;
use holdfast_volume::{BlockVolume, CleanError, DirectoryVolume, VolumeError};
use rustix::fs::{FileType, Stat, fstat, major, minor};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A home that was opened.
pub struct Home {
    files: Arc<dyn Files>,
    kind: FileType,
    number: u64,
    wearer: Arc<Wearer>,
}

impl Home {
    /// The home at a path that this descriptor was opened on.
    pub fn taken(path: &Path, home: OwnedFd) -> Outcome<Home> {
        Home::of(home).map_err(|error| {
            let what = format!("taking home {}", path.display());
            Problem::new(Exit::Failed, what, error, "see whether it can be reached")
        })
    }

    /// The home that a descriptor is open on.
    pub fn of(home: OwnedFd) -> io::Result<Home> {
        let stat = fstat(&home)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let wearer = Arc::new(Wearer::of(&home)?);
        let files: Arc<dyn Files> = match kind {
            FileType::Directory => Arc::new(RealFiles::with_root_notes(home, wearer.clone())),
            _ => Arc::new(OneFile::new(file_from_fd(home)?)),
        };
        Ok(Home { files, kind, number: number_of(&stat), wearer })
    }

    /// Whether it is one file or one device.
    pub fn is_disk(&self) -> bool {
        self.kind != FileType::Directory
    }

    /// Whether it is a block device.
    pub fn is_device(&self) -> bool {
        self.kind == FileType::BlockDevice
    }

    /// A number that no other file or device has now, nor another disk behind the same device.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The badge that it wears, and the barrier before it.
    pub fn wearer(&self) -> &Arc<Wearer> {
        &self.wearer
    }

    /// What is below it, for who opens a volume on it.
    pub fn files(&self) -> Arc<dyn Files> {
        self.files.clone()
    }

    /// What a volume that was opened on it is to its users.
    pub fn served(&self, volume: DirectoryVolume) -> Result<Volume, VolumeError> {
        match self.is_disk() {
            true => BlockVolume::new(volume).map(Volume::Block),
            false => Ok(Volume::Directory(volume)),
        }
    }
}

/// See [`Home::number`]. It means something to this program alone, and to a later build of it
/// perhaps something else, which costs a cache its warmth.
fn number_of(stat: &Stat) -> u64 {
    let mut hasher = DefaultHasher::new();
    (stat.st_dev, stat.st_ino, stat.st_rdev, disk_sequence(stat.st_rdev)).hash(&mut hasher);
    hasher.finish()
}

/// What the kernel counts up when another disk appears, if this is a disk or a part of one.
fn disk_sequence(rdev: u64) -> Option<String> {
    let device = format!("/sys/dev/block/{}:{}", major(rdev), minor(rdev));
    let mut places = ["diskseq", "../diskseq"].iter();
    places.find_map(|place| std::fs::read_to_string(format!("{device}/{place}")).ok())
}

/// A volume of either kind.
pub enum Volume {
    /// One of names.
    Directory(DirectoryVolume),
    /// A disk.
    Block(BlockVolume),
}

impl Volume {
    /// What programs see at its mount point.
    pub fn tree(&self) -> &dyn Tree {
        match self {
            Volume::Directory(volume) => volume,
            Volume::Block(volume) => volume,
        }
    }

    /// The disk, if it is one.
    pub fn blocks(&self) -> Option<&dyn Blocks> {
        match self {
            Volume::Directory(_) => None,
            Volume::Block(volume) => Some(volume),
        }
    }

    /// Notes in its region which process serves it.
    pub fn served_by(&self, pid: u32) {
        match self {
            Volume::Directory(volume) => volume.served_by(pid),
            Volume::Block(volume) => volume.served_by(pid),
        }
    }

    /// Whether its files can have second names; a disk has none.
    pub fn has_links(&self) -> bool {
        match self {
            Volume::Directory(volume) => volume.has_links(),
            Volume::Block(_) => true,
        }
    }

    /// The mount that there is began before it was noted whether the kernel keeps pages of it.
    pub fn mount_began(&self, keeps_pages: bool) -> io::Result<()> {
        if self.tree().mount_keeps_pages().is_some() {
            return Ok(());
        }
        let noted = self.tree().mount_begins(keeps_pages);
        noted.map_err(|errno| io::Error::from_raw_os_error(errno.0))
    }

    /// How far log and home are.
    pub fn marks(&self) -> Marks {
        match self {
            Volume::Directory(volume) => volume.marks(),
            Volume::Block(volume) => volume.marks(),
        }
    }

    /// Where the log ends that has given the home all it has, as far as its device has it.
    pub fn log_end(&self) -> u64 {
        match self {
            Volume::Directory(volume) => volume.log_end().get(),
            Volume::Block(volume) => volume.log_end().get(),
        }
    }

    /// Nobody uses it any more, so nobody waits for its home.
    pub fn let_go(&self) {
        match self {
            Volume::Directory(volume) => volume.let_go(),
            Volume::Block(volume) => volume.let_go(),
        }
    }

    /// Applies what is durable to the home until it is told to stop.
    pub fn run_cleaner(&self, stop: &AtomicBool) {
        match self {
            Volume::Directory(volume) => volume.run_cleaner(stop),
            Volume::Block(volume) => volume.run_cleaner(stop),
        }
    }

    /// Applies everything to the home, for the last time.
    pub fn detach(&self) -> Result<(), CleanError> {
        match self {
            Volume::Directory(volume) => volume.detach(),
            Volume::Block(volume) => volume.detach(),
        }
    }
}

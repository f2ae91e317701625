//! What a home makes of its volume: a directory of names, or a disk.
//!
//! Promise: the only place that asks which of the two it is, and on what.
//! Never: mounts anything.

use crate::exit::Exit;
use crate::keeper::lock::take_home;
use crate::problem::{Outcome, Problem};
use holdfast_io::real::{RealFiles, file_from_fd};
use holdfast_io::{Blocks, Files, OneFile};
use holdfast_volume::{BlockVolume, CleanError, DirectoryVolume, Tree, VolumeError};
use rustix::fs::{FileType, Stat, fstat, major, minor};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A home that was opened.
pub(super) struct Home {
    files: Arc<dyn Files>,
    kind: FileType,
    number: u64,
}

impl Home {
    /// Opens and locks the home of a volume that nobody has.
    pub(super) fn take(path: &Path) -> Outcome<Home> {
        Home::of(take_home(path)?).map_err(|error| {
            let what = format!("taking home {}", path.display());
            Problem::new(Exit::Failed, what, error, "see whether it can be reached")
        })
    }

    /// The home that a descriptor is open on.
    pub(super) fn of(home: OwnedFd) -> io::Result<Home> {
        let stat = fstat(&home)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let files: Arc<dyn Files> = match kind {
            FileType::Directory => Arc::new(RealFiles::from_fd(home)),
            _ => Arc::new(OneFile::new(file_from_fd(home)?)),
        };
        Ok(Home { files, kind, number: number_of(&stat) })
    }

    /// Whether it is one file or one device.
    pub(super) fn is_disk(&self) -> bool {
        self.kind != FileType::Directory
    }

    pub(super) fn is_device(&self) -> bool {
        self.kind == FileType::BlockDevice
    }

    /// A number that no other file or device has now, nor another disk behind the same device.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// What is below it, for who opens a volume on it.
    pub(super) fn files(&self) -> Arc<dyn Files> {
        self.files.clone()
    }

    /// What a volume that was opened on it is to its users.
    pub(super) fn served(&self, volume: DirectoryVolume) -> Result<Volume, VolumeError> {
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
pub(super) enum Volume {
    Directory(DirectoryVolume),
    Block(BlockVolume),
}

impl Volume {
    /// What programs see at its mount point.
    pub(super) fn tree(&self) -> &dyn Tree {
        match self {
            Volume::Directory(volume) => volume,
            Volume::Block(volume) => volume,
        }
    }

    /// The disk, if it is one.
    pub(super) fn blocks(&self) -> Option<&dyn Blocks> {
        match self {
            Volume::Directory(_) => None,
            Volume::Block(volume) => Some(volume),
        }
    }

    pub(super) fn served_by(&self, pid: u32) {
        match self {
            Volume::Directory(volume) => volume.served_by(pid),
            Volume::Block(volume) => volume.served_by(pid),
        }
    }

    pub(super) fn run_cleaner(&self, stop: &AtomicBool) {
        match self {
            Volume::Directory(volume) => volume.run_cleaner(stop),
            Volume::Block(volume) => volume.run_cleaner(stop),
        }
    }

    pub(super) fn detach(&self) -> Result<(), CleanError> {
        match self {
            Volume::Directory(volume) => volume.detach(),
            Volume::Block(volume) => volume.detach(),
        }
    }
}

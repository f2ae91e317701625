//! What a home makes of its volume: a directory of names, or a disk.
//!
//! Promise: the only place that asks which of the two it is.
//! Never: opens, locks or mounts anything.

use holdfast_io::real::{RealFiles, file_from_fd};
use holdfast_io::{Blocks, Files, OneFile};
use holdfast_volume::{BlockVolume, CleanError, DirectoryVolume, Tree, VolumeError};
use rustix::fs::{FileType, fstat};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A home that was opened.
pub(super) struct Home {
    files: Arc<dyn Files>,
    is_disk: bool,
}

impl Home {
    /// The home that a descriptor is open on.
    pub(super) fn of(home: OwnedFd) -> io::Result<Home> {
        let is_disk = FileType::from_raw_mode(fstat(&home)?.st_mode) != FileType::Directory;
        let files: Arc<dyn Files> = match is_disk {
            true => Arc::new(OneFile::new(file_from_fd(home)?)),
            false => Arc::new(RealFiles::from_fd(home)),
        };
        Ok(Home { files, is_disk })
    }

    /// What is below it, for who opens a volume on it.
    pub(super) fn files(&self) -> Arc<dyn Files> {
        self.files.clone()
    }

    /// What a volume that was opened on it is to its users.
    pub(super) fn served(&self, volume: DirectoryVolume) -> Result<Volume, VolumeError> {
        match self.is_disk {
            true => BlockVolume::new(volume).map(Volume::Block),
            false => Ok(Volume::Directory(volume)),
        }
    }
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

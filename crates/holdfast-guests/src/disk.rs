//! What is behind a guest's data disk.
//!
//! Promise: each disk begins as a copy of its database's data image, and keeps what was written to
//! it from guest to guest, except the one that is there to forget.
//! Never: looks at what is on it.

use crate::error::{During, GuestError};
use crate::volume::Volume;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A data disk.
pub(crate) enum Disk {
    /// An image file, as QEMU knows them.
    Image(PathBuf),
    /// An image of which everything written is forgotten when QEMU ends.
    Forgetful(PathBuf),
    /// A volume, by the file in its mount.
    File(Volume),
}

impl Disk {
    /// A copy of an image in `folder`, with its holes.
    pub(crate) fn copy(image: &Path, folder: &Path) -> Result<PathBuf, GuestError> {
        let copy = folder.join("disk");
        let doing = "copying the data image";
        let mut command = Command::new("cp");
        let status = command.arg("--sparse=always").arg(image).arg(&copy).status().during(doing)?;
        status.success().then_some(copy).ok_or_else(|| GuestError::new(doing, "cp failed"))
    }

    /// How QEMU is told of it, as `data`.
    pub(crate) fn arguments(&self) -> Vec<String> {
        match self {
            Disk::Image(path) => image_drive(path),
            Disk::Forgetful(path) => drive(path, "on"),
            Disk::File(volume) => drive(&volume.file(), "off"),
        }
    }

    /// The volume, if it is one.
    pub(crate) fn volume(&self) -> Option<&Volume> {
        match self {
            Disk::Image(_) | Disk::Forgetful(_) => None,
            Disk::File(volume) => Some(volume),
        }
    }

    /// The disk as an image that nothing serves any more.
    pub(crate) fn give_back(self) -> Result<Disk, GuestError> {
        match self {
            Disk::File(volume) => volume.give_back().map(Disk::Image),
            image => Ok(image),
        }
    }
}

/// How QEMU is told of an image, as `data`.
pub(crate) fn image_drive(path: &Path) -> Vec<String> {
    drive(path, "off")
}

fn drive(path: &Path, snapshot: &str) -> Vec<String> {
    let of = format!("id=data,if=none,format=raw,cache=none,snapshot={snapshot}");
    vec!["-drive".into(), format!("{of},file={}", path.display())]
}

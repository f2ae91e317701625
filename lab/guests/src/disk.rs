//! What is behind a guest's data disk.
//!
//! Promise: each disk begins as a copy of its database's data image, and keeps what was written to
//! it from guest to guest, except the one that is there to forget.
//! Never: looks at what is on it.

use crate::error::{During, GuestError};
use crate::options::Way;
use crate::volume::Volume;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the guest looks for it: behind the root.
const ADDRESS: &str = "addr=5";

/// A data disk.
pub(crate) enum Disk {
    /// An image file, as QEMU knows them.
    Image(PathBuf),
    /// An image of which everything written is forgotten when QEMU ends.
    Forgetful(PathBuf),
    /// A volume, reached in this way.
    Volume(Volume, Way),
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

    /// How QEMU is told of it and of the device at which the guest finds it.
    pub(crate) fn arguments(&self) -> Vec<String> {
        match self {
            Disk::Image(path) => image_drive(path),
            Disk::Forgetful(path) => drive(path, "on"),
            Disk::Volume(volume, Way::File) => drive(&volume.file(), "off"),
            Disk::Volume(volume, Way::Nbd) => network_drive(&volume.nbd_socket()),
            Disk::Volume(volume, Way::VhostUser) => own_queues(&volume.vhost_user_socket()),
        }
    }

    /// The volume, if it is one.
    pub(crate) fn volume(&self) -> Option<&Volume> {
        match self {
            Disk::Image(_) | Disk::Forgetful(_) => None,
            Disk::Volume(volume, _) => Some(volume),
        }
    }

    /// The disk as an image that nothing serves any more.
    pub(crate) fn give_back(self) -> Result<Disk, GuestError> {
        match self {
            Disk::Volume(volume, _) => volume.give_back().map(Disk::Image),
            image => Ok(image),
        }
    }
}

/// A disk with an empty file system.
pub(crate) fn empty_disk(folder: &Path, bytes: u64) -> Result<PathBuf, GuestError> {
    let (doing, disk) = ("making a disk", folder.join("disk"));
    File::create(&disk).and_then(|file| file.set_len(bytes)).during(doing)?;
    let status = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&disk).status().during(doing)?;
    status.success().then_some(disk).ok_or_else(|| GuestError::new(doing, "mkfs.ext4 failed"))
}

/// How QEMU is told of an image, as `data`.
pub(crate) fn image_drive(path: &Path) -> Vec<String> {
    drive(path, "off")
}

fn drive(path: &Path, snapshot: &str) -> Vec<String> {
    let of = format!("id=data,if=none,format=raw,cache=none,snapshot={snapshot}");
    with_device(vec!["-drive".into(), format!("{of},file={}", path.display())])
}

/// Requests wait in QEMU while nobody serves the socket.
fn network_drive(socket: &Path) -> Vec<String> {
    let of = "driver=nbd,node-name=data,server.type=unix,reconnect-delay=120";
    let of = format!("{of},server.path={}", socket.display());
    with_device(vec!["-blockdev".into(), of])
}

fn own_queues(socket: &Path) -> Vec<String> {
    let channel = format!("socket,id=data,path={},reconnect=1", socket.display());
    let device = format!("vhost-user-blk-pci,chardev=data,{ADDRESS}");
    vec!["-chardev".into(), channel, "-device".into(), device]
}

fn with_device(mut arguments: Vec<String>) -> Vec<String> {
    arguments.extend(["-device".into(), format!("virtio-blk-pci,drive=data,{ADDRESS}")]);
    arguments
}

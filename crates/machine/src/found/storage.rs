//! What a log, a home or a store is kept on: a disk, or RAM that is called one.
//!
//! Promise: what the kernel says is in RAM is not taken for a disk: a tmpfs or ramfs, a RAM disk,
//! compressed or not, and loop devices, partitions, mapped devices and overlays over any of these.
//! Never: asks a file system, which may hang; looks through a network, or for the directories of an
//! overlay under other names than those that whoever mounted it had for them.

use crate::mounts::{Mount, all_mounts};
use crate::unasked;
use holdfast_config::claims::Storage;
use rustix::fs::{FileType, major, makedev, minor};
use std::fs;
use std::path::Path;

/// Where the kernel tells of devices.
pub(super) const DEVICES: &str = "/sys";

/// File systems that are in RAM.
const RAM_KINDS: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// How the names of devices begin that are in RAM.
const RAM_DEVICES: [&str; 3] = ["ram", "zram", "nullb"];
/// No stack of devices is as deep; a loop device may be over its own file system by mistake.
const DEEPEST: u32 = 16;
/// Of overlays each has many directories, and two by mistake each other's.
const OVERLAID: u32 = 4;

/// What this is on, with its name for people.
pub(super) fn storage(name: &str, path: &Path) -> Storage {
    storage_behind(&format!("{name} {}", path.display()), path)
}

/// The same for what is to be found through another path than the one it is called by.
pub(super) fn storage_behind(name: &str, through: &Path) -> Storage {
    let ram = ram_behind(through, DEEPEST);
    ram.map_or(Storage::Disk, |kind| Storage::Ram(format!("{name} is on a {kind}")))
}

/// What kind of RAM a path is on, if it is. What is not there yet will be where its folder is.
fn ram_behind(path: &Path, deep: u32) -> Option<String> {
    let seen = path.ancestors().find_map(unasked::behind)?;
    let kind = FileType::from_raw_mode(seen.stx_mode.into());
    let device = match kind {
        FileType::BlockDevice => makedev(seen.stx_rdev_major, seen.stx_rdev_minor),
        _ => unasked::device_of(&seen),
    };
    let number = format!("{}:{}", major(device), minor(device));
    let mount = all_mounts().into_iter().find(|mount| mount.device == number);
    if let Some(overlay) = mount.as_ref().filter(|it| it.kind == "overlay") {
        return ram_below(overlay, deep);
    }
    let kind = mount.map(|mount| mount.kind).filter(|kind| RAM_KINDS.contains(&&**kind));
    kind.or_else(|| ram_device(&Path::new(DEVICES).join("dev/block").join(number), deep))
}

/// What kind of RAM an overlay is made of, if any of its directories is. One that is volatile keeps
/// nothing when it is asked to.
fn ram_below(overlay: &Mount, deep: u32) -> Option<String> {
    if overlay.is_volatile {
        return Some("volatile overlay".to_owned());
    }
    let deep = deep.min(OVERLAID).checked_sub(1)?;
    let mut below = overlay.layers.iter().filter(|layer| is_elsewhere(layer, overlay));
    let below = below.find_map(|layer| ram_behind(layer, deep))?;
    Some(format!("overlay over a {below}"))
}

/// Whether a directory of an overlay is where it was for whoever mounted that. In a container it is
/// not, and what has its name may lie on the overlay itself.
fn is_elsewhere(layer: &Path, overlay: &Mount) -> bool {
    let seen = unasked::behind(layer).map(|seen| unasked::device_of(&seen));
    seen.is_some_and(|device| format!("{}:{}", major(device), minor(device)) != overlay.device)
}

/// What kind of RAM a block device is, if it is, by where the kernel tells of it.
fn ram_device(device: &Path, deep: u32) -> Option<String> {
    let deep = deep.checked_sub(1)?;
    let device = fs::canonicalize(device).ok()?;
    if device.join("partition").exists() {
        return ram_device(device.parent()?, deep);
    }
    let name = device.file_name()?.to_str()?;
    let digits = |start: &&str| {
        let number = name.strip_prefix(*start);
        number.is_some_and(|it| !it.is_empty() && it.bytes().all(|digit| digit.is_ascii_digit()))
    };
    if RAM_DEVICES.iter().any(digits) {
        return Some(format!("RAM disk ({name})"));
    }
    if let Ok(file) = fs::read_to_string(device.join("loop/backing_file")) {
        let kind = ram_behind(Path::new(file.trim_end_matches('\n')), deep)?;
        return Some(format!("loop device ({name}) over a {kind}"));
    }
    let below = fs::read_dir(device.join("slaves")).ok()?.flatten();
    let below = below.map(|entry| entry.path()).find_map(|slave| ram_device(&slave, deep))?;
    Some(format!("device ({name}) over a {below}"))
}

#[cfg(test)]
mod tests;

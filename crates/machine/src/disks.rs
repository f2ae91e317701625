//! The disks of this machine that logs and homes can be on, and how long each takes for a write.
//!
//! Promise: one entry a file system that the kernel has on a device; what is measured is what a log
//! does on it: a block is written over one that is there, and the disk has it before the next.
//! Never: leaves a name behind; measures what another process or a network
//! serves, unless it is named.

use crate::mounts::{Mount, all_mounts, leads_to, mount_above};
use holdfast_io::private;
use rustix::fs::statvfs;
use rustix::io::{ReadWriteFlags, pwritev2};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is written at once: the smallest that logs write.
const BLOCK_BYTES: usize = 4096;
/// Blocks that are written over in turn.
const BLOCKS: u64 = 256;
/// Writes of a measurement at the most, and at the least.
const WRITES: std::ops::RangeInclusive<usize> = 5..=300;
/// A slow disk is asked no longer, once the fewest are there.
const PATIENCE: Duration = Duration::from_secs(2);

/// File systems on devices where nothing of ours could be: what is on them cannot be written, or
/// nobody owns it.
const UNFIT: [&str; 6] = ["iso9660", "squashfs", "erofs", "udf", "vfat", "exfat"];

/// A file system on a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Where it is mounted: the shortest path of several.
    #[serde(serialize_with = "as_text")]
    pub at: PathBuf,
    /// `ext4`, for instance.
    pub kind: String,
    /// The device, as it was called when it was mounted.
    pub device: String,
}

/// A path as JSON, which has text alone.
///
/// # Errors
/// None of its own.
pub fn as_text<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

/// How long writes took that waited for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// How many there were.
    pub writes: usize,
    /// Half of them took no longer, in microseconds.
    pub median_us: f64,
    /// The longest, in microseconds.
    pub worst_us: f64,
    /// What the file system has left for this user.
    pub free_bytes: u64,
}

/// Every file system on a device that may take a log, by where it is mounted.
pub fn all() -> Vec<Disk> {
    among(all_mounts())
}

/// The disk that a directory is on, as far as the kernel's table tells.
pub fn of(directory: &Path) -> Disk {
    let at = leads_to(&std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned()));
    let (kind, device) = mount_above(&at).map_or_else(Default::default, |it| (it.kind, it.source));
    Disk { at, kind, device }
}

fn among(mounts: Vec<Mount>) -> Vec<Disk> {
    let mut found: BTreeMap<String, Disk> = BTreeMap::new();
    let is_disk = |it: &Mount| it.source.starts_with("/dev/") && !UNFIT.contains(&&*it.kind);
    for mount in mounts.into_iter().filter(is_disk) {
        let disk = Disk { at: mount.point, kind: mount.kind, device: mount.source };
        let known = found.entry(mount.device).or_insert_with(|| disk.clone());
        if disk.at.as_os_str().len() < known.at.as_os_str().len() {
            *known = disk;
        }
    }
    let mut disks: Vec<Disk> = found.into_values().collect();
    disks.sort_by(|one, other| one.at.cmp(&other.at));
    disks
}

/// Writes into a file without a name in this directory, and waits for the disk each time.
///
/// # Errors
/// As the system says: the file system is read-only or full.
pub fn measure(directory: &Path) -> io::Result<Kept> {
    let mut file = private::nameless_file(directory)?;
    // Room that is given while it is measured would be waited for as well.
    file.write_all(&vec![0; BLOCK_BYTES * BLOCKS as usize])?;
    file.sync_all()?;
    let (mut took_us, began) = (Vec::new(), Instant::now());
    while took_us.len() < *WRITES.end()
        && (took_us.len() < *WRITES.start() || began.elapsed() < PATIENCE)
    {
        took_us.push(write_through(&file, took_us.len() as u64 % BLOCKS)?);
    }
    took_us.sort_by(f64::total_cmp);
    let space = statvfs(directory)?;
    Ok(Kept {
        writes: took_us.len(),
        median_us: took_us[took_us.len() / 2],
        worst_us: took_us[took_us.len() - 1],
        free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
    })
}

/// How many microseconds one write takes.
fn write_through(file: &File, block: u64) -> io::Result<f64> {
    let bytes = [block as u8; BLOCK_BYTES];
    let began = Instant::now();
    let offset = block * BLOCK_BYTES as u64;
    let done = pwritev2(file, &[IoSlice::new(&bytes)], offset, ReadWriteFlags::DSYNC)?;
    if done < BLOCK_BYTES {
        return Err(io::ErrorKind::WriteZero.into());
    }
    Ok(began.elapsed().as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests;

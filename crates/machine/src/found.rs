//! What the memory of a configuration is on this machine.
//!
//! Promise: memory is called persistent, or reserved, only where the kernel has it in a region of
//! persistent memory; proved, only where a probe says so and the firmware is the one it saw.
//! Never: maps anything, so it cannot tell whether stores reach the memory itself: whoever maps it
//! finds that out.

mod storage;

use crate::probe::{Proof, firmware};
use holdfast_config::claims::{Failure, MediumKind, Memory, PowerSource, Storage, Verdict};
use holdfast_config::problem::Outcome;
use holdfast_config::{
    DiskConfig, MemoryConfig, ServedLogConfig, TableConfig, VolumeConfig, claims_problem,
};
use rustix::fs::{major, minor};
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use storage::{DEVICES, storage, storage_behind};

/// What acknowledgements of a volume mean on this machine, if its memory can be mapped as what it
/// is.
pub fn verdict(name: &str, volume: &VolumeConfig, power: PowerSource) -> Outcome<Verdict> {
    let verdict = volume.verdict_on(name, memory_of(&volume.memory), power)?;
    on_storage_of(name, volume, verdict, &storage_of(volume))
}

/// What a directory is on.
pub fn storage_at(directory: &Path) -> Storage {
    storage_behind(&directory.display().to_string(), directory)
}

/// What the log and the home of a volume are on, while nothing is mounted over them.
fn storage_of(volume: &VolumeConfig) -> Storage {
    storage("its log", &volume.log).or(|| storage("its home", &volume.home))
}

/// The same for whoever has the home open, and may have a mount over it.
pub fn storage_below(volume: &VolumeConfig, home: BorrowedFd<'_>) -> Storage {
    let name = format!("its home {}", volume.home.display());
    let through = PathBuf::from(format!("/proc/self/fd/{}", home.as_raw_fd()));
    storage("its log", &volume.log).or(|| storage_behind(&name, &through))
}

/// The verdict on a volume's memory where its log and its home are on this.
pub fn on_storage_of(
    name: &str,
    volume: &VolumeConfig,
    verdict: Verdict,
    storage: &Storage,
) -> Outcome<Verdict> {
    on_storage(&format!("volume {name}"), (verdict, &volume.must_survive), storage)
}

/// What acknowledgements of a served log mean on the memory that was found.
pub fn verdict_of_log(
    whose: &str,
    log: &ServedLogConfig,
    memory: Memory,
    power: PowerSource,
) -> Outcome<Verdict> {
    let verdict = log.verdict_on(whose, memory, power)?;
    on_storage(whose, (verdict, &log.must_survive), &storage("the log", &log.log))
}

/// What acknowledgements of a table mean.
pub fn verdict_of_table(name: &str, table: &TableConfig, power: PowerSource) -> Outcome<Verdict> {
    let verdict = table.verdict(name, power)?;
    let storage = storage("its store", &table.store);
    on_storage(&format!("table {name}"), (verdict, &table.must_survive), &storage)
}

fn on_storage(
    whose: &str,
    (verdict, must_survive): (Verdict, &[Failure]),
    storage: &Storage,
) -> Outcome<Verdict> {
    let remedy = "move it to a disk, or change must_survive in the configuration";
    let stored = verdict.stored_on(storage, must_survive);
    stored.map_err(|why| claims_problem(whose, why, remedy))
}

/// What the memory is, if it can be mapped as that.
pub fn memory_of(memory: &MemoryConfig) -> Memory {
    memory_at(memory.medium, memory.path.as_deref())
}

/// [`memory_of`] a disk's memory.
pub fn memory_of_disk(disk: &DiskConfig) -> Memory {
    memory_at(disk.memory.medium, disk.memory.path.as_deref())
}

fn memory_at(medium: MediumKind, path: Option<&Path>) -> Memory {
    match (medium, path) {
        (MediumKind::Private, _) => Memory::Private,
        (MediumKind::Shm, _) => Memory::Shm,
        (MediumKind::Hugetlb, _) => Memory::Hugetlb,
        (MediumKind::Pmem, Some(path)) => behind(path, Path::new(DEVICES), &firmware()),
        (MediumKind::Pmem | MediumKind::File, _) => Memory::File,
    }
}

/// What is behind a path. `devices` is where sysfs is.
fn behind(path: &Path, devices: &Path, firmware: &str) -> Memory {
    let Some(region) = device_of(path).and_then(|device| region_of(&device, devices)) else {
        return Memory::File;
    };
    // The kernel has this file only where the firmware says what a power failure spares.
    let domain = fs::read_to_string(region.join("persistence_domain")).unwrap_or_default();
    let folder = path.parent().unwrap_or(path);
    match domain.trim() {
        "" if Proof::holds_in(folder, firmware) => Memory::Reserved,
        "" => Memory::Unproven,
        _ => Memory::Persistent,
    }
}

/// The device that a path is, or that its file system is on, by where the kernel tells of it; what
/// is not there yet will be where its folder is.
fn device_of(path: &Path) -> Option<PathBuf> {
    let found = fs::metadata(path).or_else(|_| fs::metadata(path.parent().unwrap_or(path))).ok()?;
    let (kind, device) = match found.file_type() {
        kind if kind.is_char_device() => ("char", found.rdev()),
        kind if kind.is_block_device() => ("block", found.rdev()),
        _ => ("block", found.dev()),
    };
    Some(Path::new("dev").join(kind).join(format!("{}:{}", major(device), minor(device))))
}

/// The region of persistent memory that a device lies in.
fn region_of(device: &Path, devices: &Path) -> Option<PathBuf> {
    let device = fs::canonicalize(devices.join(device)).ok()?;
    let named = |path: &Path, start: &str| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
    };
    let is_region = |path: &&Path| {
        named(path, "region") && path.parent().is_some_and(|parent| named(parent, "ndbus"))
    };
    device.ancestors().find(is_region).map(Path::to_owned)
}

#[cfg(test)]
mod tests;

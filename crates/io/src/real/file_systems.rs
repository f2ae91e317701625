//! What file systems do with room, by their numbers.
//!
//! Promise: one that is not known is thought to do nothing.
//! Never: tries anything.

use std::os::fd::BorrowedFd;

use rustix::fs::{IFlags, StatVfs, fstatfs, ioctl_getflags};

use crate::Allocation;

/// What `stat` counts room in.
pub(super) const STAT_BLOCK_BYTES: u64 = 512;
/// What most file systems give room in.
const ROOM_UNIT_BYTES: u64 = 4096;
pub(crate) const EXT4: u64 = 0xEF53;
pub(crate) const TMPFS: u64 = 0x0102_1994;
pub(super) const XFS: u64 = 0x5846_5342;
pub(super) const BTRFS: u64 = 0x9123_683E;
pub(super) const F2FS: u64 = 0xF2F5_2010;

/// The numbers that `statfs` has for file systems, and how many names each gives one file.
pub(crate) const LINKS_BY_FILE_SYSTEM: [(u64, u32); 5] =
    [(EXT4, 65_000), (XFS, i32::MAX as u32), (BTRFS, 65_535), (TMPFS, u32::MAX), (F2FS, u32::MAX)];

/// File systems that write what has room elsewhere, and let go of the old room later.
const COPY_ON_WRITE: [u64; 4] = [
    BTRFS,
    0x2FC1_2FC1, // ZFS
    0xCA45_1A4E, // Bcachefs
    0x3434,      // NILFS
];

/// Whether the file system that `root` is on writes elsewhere.
pub(super) fn copies_on_write(root: BorrowedFd<'_>) -> bool {
    fstatfs(root).is_ok_and(|found| COPY_ON_WRITE.contains(&(found.f_type as u64)))
}

/// Whether what has room in a file is written there.
pub(super) fn writes_in_place(file: BorrowedFd<'_>) -> bool {
    !copies_on_write(file) || ioctl_getflags(file).is_ok_and(|flags| flags.contains(IFlags::NOCOW))
}

/// What a file does with room. Nothing is tried on it, which would change its times, by which its
/// owner is told that somebody else changed it: a file system that is not known does nothing.
pub(super) fn allocation_of(file: BorrowedFd<'_>) -> Allocation {
    match is_known_kind(file) {
        true => Allocation::ALL,
        false => Allocation { reserves: false, gives_back: false },
    }
}

/// What a file system says that it gives room in. What one says that is not known may be anything.
pub(super) fn room_unit_told(file: BorrowedFd<'_>, space: &StatVfs) -> u64 {
    match is_known_kind(file) && space.f_frsize >= STAT_BLOCK_BYTES {
        true => space.f_frsize,
        false => ROOM_UNIT_BYTES,
    }
}

/// Whether the file system is one of those whose ways are known here.
fn is_known_kind(file: BorrowedFd<'_>) -> bool {
    let kind = fstatfs(file).map_or(0, |found| found.f_type as u64);
    LINKS_BY_FILE_SYSTEM.iter().any(|(number, _)| *number == kind)
}

//! What file systems do with room, by their numbers.
//!
//! Promise: one that is not known is thought to do nothing.
//! Never: tries anything.

use std::os::fd::BorrowedFd;

use rustix::fs::{IFlags, fstatfs, ioctl_getflags};

use crate::Allocation;

pub(crate) const TMPFS: u64 = 0x0102_1994;

/// The numbers that `statfs` has for file systems, and how many names each gives one file.
pub(crate) const LINKS_BY_FILE_SYSTEM: [(u64, u32); 5] = [
    (0xEF53, 65_000),               // ext4
    (0x5846_5342, i32::MAX as u32), // XFS
    (0x9123_683E, 65_535),          // Btrfs
    (TMPFS, u32::MAX),
    (0xF2F5_2010, u32::MAX), // F2FS
];

/// File systems that write what has room elsewhere, and let go of the old room later.
const COPY_ON_WRITE: [u64; 4] = [
    0x9123_683E, // Btrfs
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
    let kind = fstatfs(file).map_or(0, |found| found.f_type as u64);
    match LINKS_BY_FILE_SYSTEM.iter().any(|(number, _)| *number == kind) {
        true => Allocation::ALL,
        false => Allocation { reserves: false, gives_back: false },
    }
}

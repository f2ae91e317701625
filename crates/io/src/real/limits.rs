//! What the file system below a directory takes at most.
//!
//! Promise: a size that is told was tried out, on a file without a name that is gone afterwards.
//! Never: leaves anything behind, or asks for room.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FallocateFlags, Mode, OFlags, StatVfs, XattrFlags, fallocate, fsetxattr, fstat,
    fstatfs, fstatvfs, ftruncate, openat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::file_systems::{
    BTRFS, EXT4, F2FS, LINKS_BY_FILE_SYSTEM, STAT_BLOCK_BYTES, TMPFS, XFS, room_unit_told,
};
use super::open_file::RealFile;
use crate::{Allocation, InodeNumbers, Limits, OpenFile, XATTR_VALUE_BYTES_MAX};

/// Where the file system has no files without a name, this one is made, and removed at once.
const NAME: &str = ".holdfast-limits";
/// An attribute that anybody may give his file.
const TRIED_XATTR: &str = "user.holdfast-limits";
const SCRATCH_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const SCRATCH_FLAGS: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC);
/// As many names as every file system of Linux that has links takes; counted for those below.
const LINKS_MAX: u32 = 32_000;

/// File systems that make everything durable when they are asked to: those of the kernel's own
/// that lie on a device. What lies on another file system, or with a server, is not among them.
const SYNC_ALL: [u64; 5] = [
    EXT4, XFS, BTRFS, TMPFS, // which has nothing to sync
    F2FS,
];

/// File systems that keep the number of an inode where the inode is. What makes numbers up as
/// inodes come into memory, as FAT does and many a server of files, is not among them.
const KEEP_NUMBERS: [u64; 9] = [
    EXT4,
    XFS,
    BTRFS,
    TMPFS,
    F2FS,
    0x2FC1_2FC1, // ZFS
    0xCA45_1A4E, // Bcachefs
    0x3153_464A, // JFS
    0x3434,      // NILFS
];
/// An inode of the lower layer gets the number, and the device, of the one that it is copied to.
const OVERLAYFS: u64 = 0x794C_7630;

/// What the numbers of inodes are good for on the file system that `root` is on.
pub(super) fn inode_numbers(root: BorrowedFd<'_>) -> InodeNumbers {
    let kind = fstatfs(root).map_or(0, |found| found.f_type as u64);
    match fstatvfs(root) {
        _ if kind == OVERLAYFS => InodeNumbers::KeptUntilChanged,
        Ok(found) if KEEP_NUMBERS.contains(&kind) => InodeNumbers::Kept(found.f_fsid),
        _ => InodeNumbers::NotKept,
    }
}

/// Whether a sync of the file system that `root` is on makes everything durable.
pub(super) fn syncs_all(root: BorrowedFd<'_>) -> bool {
    fstatfs(root).is_ok_and(|found| SYNC_ALL.contains(&(found.f_type as u64)))
}

/// What files below `root` do with room: tried out on a file that nobody else sees. One byte behind
/// the end has nothing to lose. What is reserved is a block that the first write would take.
pub(super) fn allocation_below(root: BorrowedFd<'_>) -> io::Result<Allocation> {
    let file = RealFile::of(scratch(root)?);
    Ok(Allocation {
        reserves: is_known(file.reserve(0, 1))?,
        gives_back: is_known(file.punch(0, 1))?,
    })
}

/// What files below `root` are given room in, as one shows that nobody else sees: a file system may
/// give several of its blocks at a time, and tells nobody of that. No directory changes for this.
pub(super) fn room_unit_below(root: BorrowedFd<'_>, space: &StatVfs) -> u64 {
    let shown_bytes = match nameless(root).and_then(|file| room_of_a_byte(&file)) {
        Err(Errno::NOSPC | Errno::DQUOT | Errno::ROFS) => clusters_shown(root, space),
        shown => shown.ok(),
    };
    shown_bytes.unwrap_or(0).max(room_unit_told(root, space))
}

fn room_of_a_byte(file: &OwnedFd) -> rustix::io::Result<u64> {
    fallocate(file, FallocateFlags::KEEP_SIZE, 0, 1)?;
    Ok(fstat(file)?.st_blocks as u64 * STAT_BLOCK_BYTES)
}

/// On ext4, where nothing can be tried: its clusters are no larger than what goes into the room of
/// a directory, and into all that is free.
fn clusters_shown(root: BorrowedFd<'_>, space: &StatVfs) -> Option<u64> {
    let is_ext4 = fstatfs(root).is_ok_and(|found| found.f_type as u64 == EXT4);
    let room_bytes = fstat(root).ok()?.st_blocks as u64 * STAT_BLOCK_BYTES;
    let both = room_bytes | (space.f_bfree * space.f_frsize);
    (is_ext4 && room_bytes > 0).then_some(both & both.wrapping_neg())
}

/// Whether the file system has the call that gave this. One that has no room now does.
fn is_known(tried: io::Result<()>) -> io::Result<bool> {
    let is_full = |kind| matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    match tried {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        Err(error) if is_full(error.kind()) => Ok(true),
        tried => tried.map(|()| true),
    }
}

/// The limits of the file system that `root` is on.
pub(super) fn limits_below(root: BorrowedFd<'_>) -> io::Result<Limits> {
    let kind = fstatfs(root)?.f_type as u64;
    let known = LINKS_BY_FILE_SYSTEM.iter().find(|(number, _)| *number == kind);
    let links_max = known.map_or(LINKS_MAX, |(_, links)| *links);
    let file = scratch(root)?;
    let file_bytes_max = largest_size(&file)?;
    // Nobody knows what is below a file system that is not known.
    let links_take_inodes = known.is_none() || kind == TMPFS;
    let xattr_inode_bytes = match kind {
        EXT4 if !values_may_take_inodes(root, &file) => None,
        EXT4 | F2FS => Some(u64::MAX),
        XFS | BTRFS => None,
        _ => Limits::UNKNOWN.xattr_inode_bytes,
    };
    Ok(Limits { file_bytes_max, links_max, links_take_inodes, xattr_inode_bytes })
}

/// Whether an ext4 keeps what has no room beside an inode in one of its own (`ea_inode`), tried out
/// on the file: a value as long as a block has room nowhere else. It is said to, too, where it
/// cannot be tried, as on a full one.
fn values_may_take_inodes(root: BorrowedFd<'_>, file: &OwnedFd) -> bool {
    let has_room = || fstatvfs(root).is_ok_and(|space| space.f_ffree > 0 && space.f_bavail >= 16);
    let value_bytes = fstatvfs(root).map_or(0, |space| space.f_bsize as usize);
    let value = vec![0; value_bytes.min(XATTR_VALUE_BYTES_MAX)];
    let had_room = has_room();
    let refused = fsetxattr(file, TRIED_XATTR, &value, XattrFlags::empty()).err();
    // If that was not for want of room, there is no such place.
    !(refused == Some(Errno::NOSPC) && had_room && has_room())
}

/// A file without a name, where the file system has such files.
fn nameless(root: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    openat(root, ".", SCRATCH_FLAGS | OFlags::TMPFILE, SCRATCH_MODE)
}

/// A file that nobody else sees.
fn scratch(root: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    match nameless(root) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
            let name = format!("{NAME}-{}", std::process::id());
            // What is there by that name is somebody else's.
            let file =
                openat(root, &name, SCRATCH_FLAGS | OFlags::CREATE | OFlags::EXCL, SCRATCH_MODE)?;
            unlinkat(root, &name, AtFlags::empty())?;
            Ok(file)
        }
        opened => Ok(opened?),
    }
}

/// How many files this process may have open.
pub(super) fn open_max() -> usize {
    getrlimit(Resource::Nofile).current.and_then(|max| max.try_into().ok()).unwrap_or(usize::MAX)
}

/// The largest size that the file can be given, found by halving.
fn largest_size(file: &OwnedFd) -> io::Result<u64> {
    // Beyond this the kernel would not only refuse, but end the process.
    let ours = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    let mut fits = 0;
    let mut refused = ours.min(i64::MAX as u64).saturating_add(1);
    while refused - fits > 1 {
        let between = fits + (refused - fits) / 2;
        match ftruncate(file.as_fd(), between) {
            Ok(()) => fits = between,
            Err(Errno::FBIG | Errno::INVAL | Errno::OVERFLOW) => refused = between,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(fits)
}

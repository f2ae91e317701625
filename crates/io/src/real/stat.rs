//! What the system says of a file, in our own words, and ours in the system's.
//!
//! Promise: nothing that it says is left out of what is asked for.
//! Never: opens or changes anything.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, RawDirEntry, Stat, StatVfs, StatVfsMountFlags, Statx,
    StatxAttributes, StatxFlags, StatxTimestamp, Timespec, Timestamps, Uid, fstat, makedev, statat,
    statx,
};
use rustix::io::Errno;

use crate::{Change, DirEntry, Kind, Metadata, Space};

/// Puts what the kernel says of a file system into our own words.
pub(super) fn space_of(space: &StatVfs, room_unit_bytes: u64) -> Space {
    Space {
        total_bytes: space.f_blocks * space.f_frsize,
        free_bytes: space.f_bfree * space.f_frsize,
        available_bytes: space.f_bavail * space.f_frsize,
        total_inodes: space.f_files,
        free_inodes: space.f_ffree,
        name_bytes_max: u32::try_from(space.f_namemax).unwrap_or(u32::MAX),
        block_bytes: u32::try_from(space.f_bsize).unwrap_or(u32::MAX),
        room_unit_bytes,
        read_only: space.f_flag.contains(StatVfsMountFlags::RDONLY),
    }
}

pub(super) fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o7777)
}

/// One name, unless it is `.` or `..`. Only a file system that does not say the kind of an entry
/// costs a system call for each.
pub(super) fn entry_of(dir: &OwnedFd, entry: &RawDirEntry<'_>) -> io::Result<Option<DirEntry>> {
    let name = entry.file_name();
    if matches!(name.to_bytes(), b"." | b"..") {
        return Ok(None);
    }
    let kind = match entry.file_type() {
        FileType::Unknown => match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => kind_of(FileType::from_raw_mode(stat.st_mode))?,
            // Removed since it was listed.
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
        known => kind_of(known)?,
    };
    Ok(Some(DirEntry { name: name.to_bytes().to_vec(), kind, inode: entry.ino() }))
}

fn kind_of(file_type: FileType) -> io::Result<Kind> {
    match file_type {
        FileType::RegularFile => Ok(Kind::File),
        FileType::Directory => Ok(Kind::Directory),
        FileType::Symlink => Ok(Kind::Symlink),
        FileType::Fifo => Ok(Kind::Fifo),
        FileType::Socket => Ok(Kind::Socket),
        FileType::CharacterDevice => Ok(Kind::CharDevice),
        FileType::BlockDevice => Ok(Kind::BlockDevice),
        FileType::Unknown => Err(Errno::INVAL.into()),
    }
}

/// The type to hand to `mknod`, which makes neither directories nor links.
pub(crate) fn node_type(kind: Kind) -> io::Result<FileType> {
    match kind {
        Kind::File => Ok(FileType::RegularFile),
        Kind::Fifo => Ok(FileType::Fifo),
        Kind::Socket => Ok(FileType::Socket),
        Kind::CharDevice => Ok(FileType::CharacterDevice),
        Kind::BlockDevice => Ok(FileType::BlockDevice),
        Kind::Directory | Kind::Symlink => Err(Errno::INVAL.into()),
    }
}

/// Describes what a descriptor of any kind stands for.
pub(super) fn describe_open(fd: &OwnedFd) -> io::Result<Metadata> {
    describe(&statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?)
}

/// Puts what the kernel says into our own words.
fn describe(stat: &Statx) -> io::Result<Metadata> {
    let has = |attribute| stat.stx_attributes.contains(attribute);
    Ok(Metadata {
        kind: kind_of(FileType::from_raw_mode(stat.stx_mode.into()))?,
        mode: u32::from(stat.stx_mode) & 0o7777,
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        size_bytes: stat.stx_size,
        allocated_bytes: stat.stx_blocks * 512,
        links: stat.stx_nlink,
        inode: stat.stx_ino,
        device: makedev(stat.stx_dev_major, stat.stx_dev_minor),
        immutable: has(StatxAttributes::IMMUTABLE),
        encrypted: has(StatxAttributes::ENCRYPTED),
        append_only: has(StatxAttributes::APPEND),
        rdev: makedev(stat.stx_rdev_major, stat.stx_rdev_minor),
        accessed_ns: instant_ns(&stat.stx_atime),
        modified_ns: instant_ns(&stat.stx_mtime),
        changed_ns: instant_ns(&stat.stx_ctime),
    })
}

fn instant_ns(time: &StatxTimestamp) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

/// The owner and group to set, if either is.
pub(super) fn owner(change: &Change) -> Option<(Option<Uid>, Option<Gid>)> {
    let wanted = change.uid.is_some() || change.gid.is_some();
    wanted.then(|| (change.uid.map(Uid::from_raw), change.gid.map(Gid::from_raw)))
}

/// The times to set, if either is; the other stays as it is. It is given as that, since a file
/// system that a process makes may know both or none (all with version 2 of libfuse), and says
/// nothing about one.
pub(super) fn times(fd: impl AsFd, change: &Change) -> io::Result<Option<Timestamps>> {
    let (accessed, modified) = match (change.accessed_ns, change.modified_ns) {
        (None, None) => return Ok(None),
        (Some(accessed_ns), Some(modified_ns)) => (instant(accessed_ns), instant(modified_ns)),
        (accessed_ns, modified_ns) => {
            let now = fstat(fd)?;
            let (accessed, modified) = times_of(&now);
            (accessed_ns.map_or(accessed, instant), modified_ns.map_or(modified, instant))
        }
    };
    Ok(Some(Timestamps { last_access: accessed, last_modification: modified }))
}

fn times_of(now: &Stat) -> (Timespec, Timespec) {
    let time = |tv_sec, nanoseconds| Timespec { tv_sec, tv_nsec: nanoseconds as i64 };
    (time(now.st_atime, now.st_atime_nsec), time(now.st_mtime, now.st_mtime_nsec))
}

/// A time that no system counts becomes the last one that is counted.
fn instant(time_ns: i128) -> Timespec {
    const SECOND_NS: i128 = 1_000_000_000;
    Timespec {
        tv_sec: i64::try_from(time_ns.div_euclid(SECOND_NS)).unwrap_or(i64::MAX),
        tv_nsec: time_ns.rem_euclid(SECOND_NS) as i64,
    }
}

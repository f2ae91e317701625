//! Files below one directory, by `*at` system calls.
//!
//! Promise: everything is resolved from a descriptor of the root taken once, so a file system
//! mounted over the root later changes nothing; modes are set whatever the umask is.
//! Never: follows a symbolic link, at any place of a path.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, RawDir, RawDirEntry, RenameFlags, ResolveFlags,
    Stat, StatVfs, Timespec, Timestamps, UTIME_OMIT, Uid, chmodat, chownat, fchmod, fstatvfs,
    fsync, linkat, mkdirat, mknodat, open, openat2, readlinkat, renameat, renameat_with, statat,
    symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::open_file::RealFile;
use crate::path::{check, check_both};
use crate::{Change, DirEntry, Files, Kind, Metadata, OpenFile, OpenHow, Space};

/// Bytes of names asked for in one `getdents64`: about a thousand names.
const NAMES_BUFFER_BYTES: usize = 64 << 10;

/// The files below a directory of this machine.
#[derive(Debug)]
pub struct RealFiles {
    root: OwnedFd,
}

impl RealFiles {
    /// Takes hold of the directory `root`, which must exist; a symbolic link at its last place is
    /// refused.
    pub fn open(root: &Path) -> io::Result<RealFiles> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(RealFiles { root: open(root, flags, Mode::empty())? })
    }

    /// Takes the directory that `root` is open on, such as one opened before a mount covered it.
    pub fn from_fd(root: OwnedFd) -> RealFiles {
        RealFiles { root }
    }

    /// Opens what `path` names; a symbolic link anywhere in it is an error (`ELOOP`).
    fn open_at(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        check(path)?;
        let flags = flags | OFlags::CLOEXEC;
        Ok(openat2(&self.root, name_of(path), flags, mode, ResolveFlags::NO_SYMLINKS)?)
    }

    /// Calls `act` with a descriptor of the directory that holds the last name of `path`, and that
    /// name. Only the last name is left for `act` to resolve, so no link is followed on the way.
    fn at<T>(
        &self,
        path: &Path,
        act: impl FnOnce(BorrowedFd<'_>, &Path) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        check(path)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let (Some(parent), Some(name)) = (parent, path.file_name()) else {
            return Ok(act(self.root.as_fd(), name_of(path))?);
        };
        let parent = self.open_at(parent, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
        Ok(act(parent.as_fd(), Path::new(name))?)
    }

    /// [`Self::at`] for two names.
    fn at_both(
        &self,
        one: &Path,
        other: &Path,
        act: impl Fn(BorrowedFd<'_>, &Path, BorrowedFd<'_>, &Path) -> rustix::io::Result<()>,
    ) -> io::Result<()> {
        check_both(one, other)?;
        self.at(one, |one_dir, one_name| {
            Ok(self.at(other, |dir, name| act(one_dir, one_name, dir, name)))
        })?
    }

    /// Sets permission bits of what the name itself refers to.
    ///
    /// `fchmodat` knows no "do not follow" before Linux 6.6, so the name is pinned first and then
    /// changed through its descriptor.
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        let pinned = self.open_at(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
        let through = format!("/proc/self/fd/{}", pinned.as_raw_fd());
        Ok(chmodat(CWD, through, permissions(mode), AtFlags::empty())?)
    }

    /// Opens an existing file, or creates it, so that a new one has exactly the mode asked for.
    fn open_or_create(&self, path: &Path, how: OpenHow, flags: OFlags) -> io::Result<OwnedFd> {
        let Some(mode) = how.create_mode else {
            return self.open_at(path, flags, Mode::empty());
        };
        if !how.exclusive {
            match self.open_at(path, flags, Mode::empty()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                outcome => return outcome,
            }
        }
        let new = OFlags::CREATE | OFlags::EXCL;
        match self.open_at(path, flags | new, permissions(mode)) {
            Ok(fd) => {
                fchmod(&fd, permissions(mode))?;
                Ok(fd)
            }
            // Somebody else made it in between: theirs is as good.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !how.exclusive => {
                self.open_at(path, flags, Mode::empty())
            }
            Err(error) => Err(error),
        }
    }
}

impl Files for RealFiles {
    fn open(&self, path: &Path, how: OpenHow) -> io::Result<Arc<dyn OpenFile>> {
        let access = if how.write { OFlags::RDWR } else { OFlags::RDONLY };
        // Without NONBLOCK, opening a pipe by mistake would wait for its other end.
        let fd = self.open_or_create(path, how, access | OFlags::NONBLOCK)?;
        Ok(Arc::new(RealFile::new(fd, how.direct)?))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let stat = self.at(path, |dir, name| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW))?;
        describe(&stat)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let dir = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut buffer = Vec::with_capacity(NAMES_BUFFER_BYTES);
        let mut names = RawDir::new(&dir, buffer.spare_capacity_mut());
        let mut entries = Vec::new();
        while let Some(entry) = names.next() {
            entries.extend(entry_of(&dir, &entry?)?);
        }
        Ok(entries)
    }

    fn read_link(&self, path: &Path) -> io::Result<Vec<u8>> {
        let target = self.at(path, |dir, name| readlinkat(dir, name, Vec::new()))?;
        Ok(target.into_bytes())
    }

    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.at(path, |dir, name| mkdirat(dir, name, permissions(mode)))?;
        self.set_mode(path, mode)
    }

    fn make_symlink(&self, path: &Path, target: &[u8]) -> io::Result<()> {
        self.at(path, |dir, name| symlinkat(target, dir, name))
    }

    fn make_node(&self, path: &Path, kind: Kind, mode: u32, rdev: u64) -> io::Result<()> {
        let node = node_type(kind)?;
        self.at(path, |dir, name| mknodat(dir, name, node, permissions(mode), rdev))?;
        self.set_mode(path, mode)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.at_both(from, to, |from_dir, from_name, to_dir, to_name| {
            linkat(from_dir, from_name, to_dir, to_name, AtFlags::empty())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.at_both(from, to, |from_dir, from_name, to_dir, to_name| {
            renameat(from_dir, from_name, to_dir, to_name)
        })
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        self.at_both(one, other, |one_dir, one_name, other_dir, other_name| {
            renameat_with(one_dir, one_name, other_dir, other_name, RenameFlags::EXCHANGE)
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.at(path, |dir, name| unlinkat(dir, name, AtFlags::empty()))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.at(path, |dir, name| unlinkat(dir, name, AtFlags::REMOVEDIR))
    }

    fn change(&self, path: &Path, change: &Change) -> io::Result<()> {
        let here = AtFlags::SYMLINK_NOFOLLOW;
        // The owner first: changing it clears the set-user-id bits that the mode may set.
        if let Some((uid, gid)) = owner(change) {
            self.at(path, |dir, name| chownat(dir, name, uid, gid, here))?;
        }
        if let Some(mode) = change.mode {
            self.set_mode(path, mode)?;
        }
        if let Some(times) = times(change) {
            self.at(path, |dir, name| utimensat(dir, name, &times, here))?;
        }
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let dir = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        Ok(fsync(&dir)?)
    }

    fn space(&self) -> io::Result<Space> {
        Ok(space_of(&fstatvfs(&self.root)?))
    }
}

/// Puts what the kernel says of a file system into our own words.
pub(super) fn space_of(space: &StatVfs) -> Space {
    Space {
        total_bytes: space.f_blocks * space.f_frsize,
        free_bytes: space.f_bfree * space.f_frsize,
        available_bytes: space.f_bavail * space.f_frsize,
        total_inodes: space.f_files,
        free_inodes: space.f_ffree,
        name_bytes_max: u32::try_from(space.f_namemax).unwrap_or(u32::MAX),
        block_bytes: u32::try_from(space.f_bsize).unwrap_or(u32::MAX),
    }
}

/// What the kernel calls `path`: the root is `.`.
fn name_of(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o7777)
}

/// One name, unless it is `.` or `..`. Only a file system that does not say the kind of an entry
/// costs a system call for each.
fn entry_of(dir: &OwnedFd, entry: &RawDirEntry<'_>) -> io::Result<Option<DirEntry>> {
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
fn node_type(kind: Kind) -> io::Result<FileType> {
    match kind {
        Kind::File => Ok(FileType::RegularFile),
        Kind::Fifo => Ok(FileType::Fifo),
        Kind::Socket => Ok(FileType::Socket),
        Kind::CharDevice => Ok(FileType::CharacterDevice),
        Kind::BlockDevice => Ok(FileType::BlockDevice),
        Kind::Directory | Kind::Symlink => Err(Errno::INVAL.into()),
    }
}

/// Puts what the kernel says into our own words.
pub(super) fn describe(stat: &Stat) -> io::Result<Metadata> {
    Ok(Metadata {
        kind: kind_of(FileType::from_raw_mode(stat.st_mode))?,
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
        allocated_bytes: u64::try_from(stat.st_blocks).unwrap_or(0) * 512,
        // One architecture has 32 bits here, the other 64.
        #[allow(clippy::useless_conversion, clippy::unnecessary_fallible_conversions)]
        links: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        inode: stat.st_ino,
        rdev: stat.st_rdev,
        accessed_ns: instant_ns(stat.st_atime, stat.st_atime_nsec),
        modified_ns: instant_ns(stat.st_mtime, stat.st_mtime_nsec),
        changed_ns: instant_ns(stat.st_ctime, stat.st_ctime_nsec),
    })
}

/// Saturates outside the years 1677 to 2262.
fn instant_ns(seconds: i64, nanoseconds: u64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add_unsigned(nanoseconds)
}

/// The owner and group to set, if either is.
pub(super) fn owner(change: &Change) -> Option<(Option<Uid>, Option<Gid>)> {
    let wanted = change.uid.is_some() || change.gid.is_some();
    wanted.then(|| (change.uid.map(Uid::from_raw), change.gid.map(Gid::from_raw)))
}

/// The times to set, if either is; the other is left alone.
pub(super) fn times(change: &Change) -> Option<Timestamps> {
    let wanted = change.accessed_ns.is_some() || change.modified_ns.is_some();
    wanted.then(|| Timestamps {
        last_access: instant(change.accessed_ns),
        last_modification: instant(change.modified_ns),
    })
}

fn instant(time_ns: Option<i64>) -> Timespec {
    match time_ns {
        Some(ns) => {
            Timespec { tv_sec: ns.div_euclid(1_000_000_000), tv_nsec: ns.rem_euclid(1_000_000_000) }
        }
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
    }
}

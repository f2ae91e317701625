//! Files below one directory, by `*at` system calls.
//!
//! Promise: everything is resolved from a descriptor of the root taken once, so a file system
//! mounted over the root later changes nothing; modes are set whatever the umask is; a path may be
//! as long as its caller likes.
//! Never: follows a symbolic link, at any place of a path, or enters another file system: a mount
//! below the root, or a subvolume, is `EXDEV`.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RawDirEntry, RenameFlags, ResolveFlags, Stat, StatVfs,
    StatVfsMountFlags, Statx, StatxAttributes, StatxFlags, StatxTimestamp, Timespec, Timestamps,
    Uid, fchmod, fstat, fstatvfs, linkat, makedev, mkdirat, mknodat, open, openat2, renameat,
    renameat_with, statat, statx, symlinkat, syncfs, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::held::RealHeld;
use super::limits::{
    allocation_below, copies_on_write, inode_numbers, limits_below, room_unit_below, syncs_all,
};
use super::open_file::RealFile;
use crate::path::{check, check_both};
use crate::{
    Allocation, Change, DirEntry, Files, Held, InodeNumbers, Kind, Limits, Metadata, OpenFile,
    OpenHow, Space,
};

/// Longest path that one system call takes, without the byte that ends it.
const CALL_PATH_BYTES_MAX: usize = 4095;
/// A number that was found in a directory means an inode of that file system alone.
const RESOLVE: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_XDEV);

/// An attribute of a root that is this program's own, and is shown to nobody.
pub const SHADOWED: &str = "trusted.holdfast.volume";

/// Where the permission bits of a root are kept while its directory has others.
pub trait RootMode: std::fmt::Debug + Send + Sync {
    /// Those that users see; `None` if the directory has its own.
    fn shown(&self) -> Option<u32>;
    /// Keeps other bits for users. They are durable once the directory is synced.
    fn keep(&self, mode: u32) -> io::Result<()>;
}

/// The files below a directory of this machine.
#[derive(Debug)]
pub struct RealFiles {
    root: Arc<Root>,
}

/// The directory that all paths begin at.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) fd: OwnedFd,
    /// Its device, once somebody has asked.
    device: OnceLock<u64>,
    /// Whether it is encrypted.
    encrypted: OnceLock<bool>,
    /// And what numbers are good for there.
    numbers: OnceLock<InodeNumbers>,
    /// And what room is given in there.
    room_unit_bytes: OnceLock<u64>,
    /// Where its permission bits are kept, if not with it.
    pub(super) mode: Option<Arc<dyn RootMode>>,
}

impl Root {
    pub(super) fn is_encrypted(&self) -> io::Result<bool> {
        match self.encrypted.get() {
            Some(encrypted) => Ok(*encrypted),
            None => {
                let encrypted = describe_open(&self.fd)?.encrypted;
                Ok(*self.encrypted.get_or_init(|| encrypted))
            }
        }
    }

    pub(super) fn device(&self) -> io::Result<u64> {
        match self.device.get() {
            Some(device) => Ok(*device),
            None => {
                let device = describe_open(&self.fd)?.device;
                Ok(*self.device.get_or_init(|| device))
            }
        }
    }
}

impl RealFiles {
    /// Takes hold of the directory `root`, which must exist; a symbolic link at its last place is
    /// refused.
    pub fn open(root: &Path) -> io::Result<RealFiles> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(RealFiles::from_fd(open(root, flags, Mode::empty())?))
    }

    /// Takes the directory that `root` is open on, such as one opened before a mount covered it.
    pub fn from_fd(root: OwnedFd) -> RealFiles {
        RealFiles::of(root, None)
    }

    /// [`Self::from_fd`] with the root's permission bits kept elsewhere.
    pub fn with_root_mode(root: OwnedFd, mode: Arc<dyn RootMode>) -> RealFiles {
        RealFiles::of(root, Some(mode))
    }

    fn of(fd: OwnedFd, mode: Option<Arc<dyn RootMode>>) -> RealFiles {
        RealFiles {
            root: Arc::new(Root {
                fd,
                device: OnceLock::new(),
                encrypted: OnceLock::new(),
                numbers: OnceLock::new(),
                room_unit_bytes: OnceLock::new(),
                mode,
            }),
        }
    }

    /// Opens what `path` names; a symbolic link anywhere in it is an error (`ELOOP`), and so is a
    /// mount (`EXDEV`).
    fn open_at(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        check(path)?;
        let (near, rest) = self.near(path)?;
        let from = near.as_ref().map_or(self.root.fd.as_fd(), AsFd::as_fd);
        Ok(openat2(from, name_of(rest), flags | OFlags::CLOEXEC, mode, RESOLVE)?)
    }

    /// [`Self::open_at`] for reading, which leaves the time of the last access as it is. Only who
    /// owns a file, or may do as its owner, can ask for that.
    fn open_unnoticed(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        match self.open_at(path, flags | OFlags::NOATIME, Mode::empty()) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.open_at(path, flags, Mode::empty())
            }
            opened => opened,
        }
    }

    /// The directory from which the rest of `path` fits into one call, if that is not the root, and
    /// that rest.
    fn near<'p>(&self, path: &'p Path) -> io::Result<(Option<OwnedFd>, &'p Path)> {
        let (mut near, mut rest) = (None::<OwnedFd>, path.as_os_str().as_bytes());
        while rest.len() > CALL_PATH_BYTES_MAX {
            let slash = rest[..=CALL_PATH_BYTES_MAX].iter().rposition(|byte| *byte == b'/');
            let slash = slash.ok_or(Errno::NAMETOOLONG)?;
            let front = Path::new(OsStr::from_bytes(&rest[..slash]));
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let from = near.as_ref().map_or(self.root.fd.as_fd(), AsFd::as_fd);
            near = Some(openat2(from, front, flags, Mode::empty(), RESOLVE)?);
            rest = &rest[slash + 1..];
        }
        Ok((near, Path::new(OsStr::from_bytes(rest))))
    }

    fn take(&self, path: &Path) -> io::Result<RealHeld> {
        let fd = self.open_at(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(RealHeld { fd, root: self.root.clone(), is_root: path.as_os_str().is_empty() })
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
            return Ok(act(self.root.fd.as_fd(), name_of(path))?);
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

    /// An empty file that was not there before.
    fn make_file(&self, path: &Path, mode: u32) -> io::Result<RealHeld> {
        let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let fd = self.open_at(path, new, permissions(mode))?;
        Ok(RealHeld { fd, root: self.root.clone(), is_root: false })
    }

    /// Takes hold of what has just been made. No call makes it and opens it at once, so what is
    /// taken has to look as if nobody had used it, and be this process's.
    fn take_new(&self, path: &Path, kind: Kind) -> io::Result<RealHeld> {
        let held = self.take(path)?;
        let found = held.metadata()?;
        let is_blank = match kind {
            Kind::Directory => found.kind == kind && held.read_dir()?.is_empty(),
            kind => found.kind == kind && found.links == 1,
        };
        match is_blank && found.uid == geteuid().as_raw() {
            true => Ok(held),
            false => Err(Errno::STALE.into()),
        }
    }

    /// Opens an existing file, or creates it, so that a new one has exactly the mode asked for.
    fn open_or_create(&self, path: &Path, how: OpenHow, flags: OFlags) -> io::Result<OwnedFd> {
        let Some(mode) = how.create_mode else {
            return self.open_unnoticed(path, flags);
        };
        if !how.exclusive {
            match self.open_unnoticed(path, flags) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                outcome => return outcome,
            }
        }
        let new = OFlags::CREATE | OFlags::EXCL;
        match self.open_at(path, flags | new | OFlags::NOATIME, permissions(mode)) {
            Ok(fd) => {
                fchmod(&fd, permissions(mode))?;
                Ok(fd)
            }
            // Somebody else made it in between: theirs is as good.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !how.exclusive => {
                self.open_unnoticed(path, flags)
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

    fn hold(&self, path: &Path) -> io::Result<Box<dyn Held>> {
        Ok(Box::new(self.take(path)?))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.take(path)?.metadata()
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.take(path)?.read_dir()
    }

    fn read_link(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.take(path)?.read_link()
    }

    fn make(&self, path: &Path, kind: Kind, mode: u32, rdev: u64) -> io::Result<Box<dyn Held>> {
        let held = match kind {
            Kind::File => self.make_file(path, mode)?,
            Kind::Directory => {
                self.at(path, |dir, name| mkdirat(dir, name, permissions(mode)))?;
                self.take_new(path, kind)?
            }
            kind => {
                let node = node_type(kind)?;
                self.at(path, |dir, name| mknodat(dir, name, node, permissions(mode), rdev))?;
                self.take_new(path, kind)?
            }
        };
        held.change(&Change { mode: Some(mode), ..Change::default() })?;
        Ok(Box::new(held))
    }

    fn make_symlink(&self, path: &Path, target: &[u8]) -> io::Result<()> {
        self.at(path, |dir, name| symlinkat(target, dir, name))
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
        self.take(path)?.change(change)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.take(path)?.sync_dir()
    }

    fn space(&self) -> io::Result<Space> {
        let (root, space) = (self.root.fd.as_fd(), fstatvfs(&self.root.fd)?);
        let unit_bytes = || room_unit_below(root, &space);
        Ok(space_of(&space, *self.root.room_unit_bytes.get_or_init(unit_bytes)))
    }

    fn xattr(&self, path: &Path, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.take(path)?.xattr(name)
    }

    fn xattr_names(&self, path: &Path) -> io::Result<Vec<Vec<u8>>> {
        self.take(path)?.xattr_names()
    }

    fn set_xattr(&self, path: &Path, name: &[u8], value: &[u8]) -> io::Result<()> {
        self.take(path)?.set_xattr(name, value)
    }

    fn remove_xattr(&self, path: &Path, name: &[u8]) -> io::Result<()> {
        self.take(path)?.remove_xattr(name)
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(syncfs(&self.root.fd)?)
    }

    fn has_sync_all(&self) -> bool {
        syncs_all(self.root.fd.as_fd())
    }

    fn limits(&self) -> io::Result<Limits> {
        limits_below(self.root.fd.as_fd())
    }

    fn allocation(&self) -> io::Result<Allocation> {
        allocation_below(self.root.fd.as_fd())
    }

    /// Files that are there may be of another mind than the directory, so it is not asked.
    fn writes_in_place(&self) -> bool {
        !copies_on_write(self.root.fd.as_fd())
    }

    fn inode_numbers(&self) -> InodeNumbers {
        *self.root.numbers.get_or_init(|| inode_numbers(self.root.fd.as_fd()))
    }
}

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

/// What the kernel calls `path`: the root is `.`.
fn name_of(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
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

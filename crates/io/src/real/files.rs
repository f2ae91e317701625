//! Files below one directory, by `*at` system calls.
//!
//! Promise: everything is resolved from a descriptor of the root taken once, so a file system
//! mounted over the root later changes nothing; modes are set whatever the umask is; a path may be
//! as long as its caller likes.
//! Never: changes anything in a process that was forked from the one that took the root; follows a
//! symbolic link, at any place of a path, or enters another file system: a mount below the root, or
//! a subvolume, is `EXDEV`.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, fchmod, fstatvfs, linkat, mkdirat, mknodat,
    open, openat2, renameat, renameat_with, symlinkat, syncfs, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::file_systems::copies_on_write;
use super::held::RealHeld;
use super::limits::{
    allocation_below, inode_numbers, limits_below, open_max, room_unit_below, syncs_all,
};
use super::open_file::RealFile;
use super::root::{Root, RootNotes};
use super::stat::{node_type, permissions, space_of};
use crate::path::{check, check_both};
use crate::{
    Allocation, Change, DirEntry, Files, Held, InodeNumbers, Kind, Limits, Metadata, OpenFile,
    OpenHow, Opener, Space,
};

/// Longest path that one system call takes, without the byte that ends it.
const CALL_PATH_BYTES_MAX: usize = 4095;
/// A number that was found in a directory means an inode of that file system alone.
const RESOLVE: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_XDEV);

/// An attribute of a root that is this program's own, and is shown to nobody.
pub const SHADOWED: &str = "trusted.holdfast.volume";

/// The files below a directory of this machine.
#[derive(Debug)]
pub struct RealFiles {
    root: Arc<Root>,
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

    /// [`Self::from_fd`] with notes of the root.
    pub fn with_root_notes(root: OwnedFd, notes: Arc<dyn RootNotes>) -> RealFiles {
        RealFiles::of(root, Some(notes))
    }

    fn of(fd: OwnedFd, notes: Option<Arc<dyn RootNotes>>) -> RealFiles {
        RealFiles {
            root: Arc::new(Root {
                fd,
                opener: Opener::this_process(),
                device: OnceLock::new(),
                encrypted: OnceLock::new(),
                numbers: OnceLock::new(),
                room_unit_bytes: OnceLock::new(),
                notes,
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

    /// Calls `act`, which changes something, with a descriptor of the directory that holds the last
    /// name of `path`, and that name. Only the last name is left for `act` to resolve, so no link
    /// is followed on the way.
    fn at<T>(
        &self,
        path: &Path,
        act: impl FnOnce(BorrowedFd<'_>, &Path) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        self.root.opener.check()?;
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
        self.root.opener.check()?;
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

/// A name that nothing ever gets.
const NEVER_GIVEN: &str = ".holdfast-never-given";

impl Files for RealFiles {
    fn open(&self, path: &Path, how: OpenHow) -> io::Result<Arc<dyn OpenFile>> {
        if how.write || how.create_mode.is_some() {
            self.root.opener.check()?;
        }
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
        self.root.opener.check()?;
        Ok(syncfs(&self.root.fd)?)
    }

    fn note_came_home(&self, log_position: u64) -> io::Result<bool> {
        let Some(notes) = &self.root.notes else { return Ok(false) };
        self.root.opener.check()?;
        notes.came_home(log_position).map(|()| true)
    }

    fn open_max(&self) -> usize {
        open_max()
    }

    fn has_sync_all(&self) -> bool {
        syncs_all(self.root.fd.as_fd())
    }

    /// Asks for a second name of a directory, which no file system gives. The kernel refuses that
    /// itself, but not before the file system would take a new name: while it is frozen, it waits.
    fn wait_while_frozen(&self) {
        let root = self.root.fd.as_fd();
        // What it is refused with says nothing.
        let _ = linkat(root, ".", root, NEVER_GIVEN, AtFlags::empty());
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

/// What the kernel calls `path`: the root is `.`.
fn name_of(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

//! One inode below a root, by a descriptor that only stands for it.
//!
//! Promise: whatever is done is done to that inode, whichever names lead to it by now.
//! Never: changes anything in a process that was forked from the one that took the root; opens it
//! before somebody asks, so that one which is not the right one is left alone.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, chmodat, chownat, fstat, fsync, ioctl_getflags,
    open, openat, readlinkat, utimensat,
};
use rustix::io::Errno;

use super::open_file::RealFile;
use super::root::{Root, RootNotes};
use super::stat::{describe_open, entry_of, owner, permissions, times};
use super::{raw, xattr};
use crate::acl::{self, Acl};
use crate::{Change, DirEntry, Held, Kind, Metadata, OpenFile, Traits};

/// Bytes of names asked for in one `getdents64`: about a thousand names.
const NAMES_BUFFER_BYTES: usize = 64 << 10;

/// `FS_CASEFOLD_FL`
const FOLDS_CASE: u32 = 0x4000_0000;

/// What a descriptor, opened with `O_PATH`, stands for.
pub(super) struct RealHeld {
    pub(super) fd: OwnedFd,
    pub(super) root: Arc<Root>,
    pub(super) is_root: bool,
}

impl RealHeld {
    /// What keeps the bits of it that users see, and these, where they are not with it.
    fn kept(&self) -> Option<(&dyn RootNotes, u32)> {
        let kept = self.root.notes.as_deref().filter(|_| self.is_root)?;
        Some((kept, kept.shown()?))
    }

    /// The bits of it that users see, where they are not with it.
    fn kept_mode(&self) -> Option<u32> {
        self.kept().map(|(_, shown)| shown)
    }

    /// Opens the directory that it is for reading.
    fn directory(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | flags;
        let is_link = |mode| FileType::from_raw_mode(mode) == FileType::Symlink;
        match openat(&self.fd, ".", flags, Mode::empty()) {
            Err(Errno::NOTDIR) if is_link(fstat(&self.fd)?.st_mode) => Err(Errno::LOOP.into()),
            opened => Ok(opened?),
        }
    }

    /// Opens it to be asked about itself, if it is a file or a directory.
    fn asked(&self) -> io::Result<Option<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match FileType::from_raw_mode(fstat(&self.fd)?.st_mode) {
            FileType::Directory => Ok(Some(self.directory(OFlags::empty())?)),
            FileType::RegularFile => Ok(Some(open(self.through(), flags, Mode::empty())?)),
            _ => Ok(None),
        }
    }

    /// An access list of the root: the directory gets it without the bits that users are to see,
    /// and these are kept with its mode.
    fn set_root_list(&self, (kept, shown): (&dyn RootNotes, u32), value: &[u8]) -> io::Result<()> {
        let Some(list) = Acl::decode(value) else { return Err(Errno::INVAL.into()) };
        xattr::set(&self.through(), acl::ACCESS, &list.with_mode(0).encode())?;
        kept.keep(shown & !0o777 | list.mode())
    }

    /// `fchmod` takes no such descriptor, and `fchmodat` no empty name.
    fn set_mode(&self, mode: u32) -> io::Result<()> {
        if let Some((kept, _)) = self.kept() {
            return kept.keep(mode & 0o7777);
        }
        Ok(chmodat(CWD, self.through(), permissions(mode), AtFlags::empty())?)
    }

    /// A path that leads to it, and nowhere else, for as long as the descriptor is open.
    fn through(&self) -> String {
        format!("/proc/self/fd/{}", self.fd.as_raw_fd())
    }
}

impl Held for RealHeld {
    /// A directory of another device is a subvolume, which no mount leads into: its inodes are
    /// numbered anew.
    fn metadata(&self) -> io::Result<Metadata> {
        let metadata = describe_open(&self.fd)?;
        if metadata.kind == Kind::Directory && metadata.device != self.root.device()? {
            return Err(Errno::XDEV.into());
        }
        // The key of all of a home is the business of who has the home.
        let encrypted = metadata.encrypted && !self.root.is_encrypted()?;
        let mode = self.kept_mode().unwrap_or(metadata.mode);
        Ok(Metadata { mode, encrypted, ..metadata })
    }

    fn open(&self, write: bool) -> io::Result<Arc<dyn OpenFile>> {
        if write {
            self.root.opener.check()?;
        }
        // To open anything else may do something.
        match FileType::from_raw_mode(fstat(&self.fd)?.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(Errno::ISDIR.into()),
            _ => return Err(Errno::INVAL.into()),
        }
        // Who has a lease on it would keep this waiting for as long as `lease-break-time`.
        let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
        let access = access | OFlags::CLOEXEC | OFlags::NONBLOCK;
        // Only who owns a file, or may do as its owner, can leave the time of access alone.
        let opened = match open(self.through(), access | OFlags::NOATIME, Mode::empty()) {
            Err(Errno::PERM) => open(self.through(), access, Mode::empty()),
            opened => opened,
        };
        Ok(Arc::new(RealFile::new(opened?, false)?))
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        self.root.opener.check()?;
        let itself = AtFlags::EMPTY_PATH;
        // The owner first: changing it clears the set-user-id bits that the mode may set.
        if let Some((uid, gid)) = owner(change) {
            chownat(&self.fd, "", uid, gid, itself)?;
        }
        if let Some(mode) = change.mode {
            self.set_mode(mode)?;
        }
        if let Some(times) = times(&self.fd, change)? {
            utimensat(&self.fd, "", &times, itself)?;
        }
        Ok(())
    }

    fn traits(&self) -> io::Result<Option<Traits>> {
        let Some(fd) = self.asked()? else { return Ok(None) };
        let found = told(raw::get(&fd))?;
        let folds_case = told(ioctl_getflags(&fd).map(|flags| flags.bits()))? & FOLDS_CASE != 0;
        Ok(Some(Traits {
            project: found.project,
            hands_project_down: found.flags & raw::HANDS_PROJECT_DOWN != 0,
            no_symlinks: found.flags & raw::NO_SYMLINKS != 0,
            folds_case,
        }))
    }

    fn hand_no_project_down(&self) -> io::Result<()> {
        self.root.opener.check()?;
        let fd = self.directory(OFlags::empty())?;
        let mut now = told(raw::get(&fd))?;
        if now.flags & raw::HANDS_PROJECT_DOWN == 0 {
            return Ok(());
        }
        now.flags &= !raw::HANDS_PROJECT_DOWN;
        Ok(raw::set(&fd, now)?)
    }

    fn read_dir(&self) -> io::Result<Vec<DirEntry>> {
        self.metadata()?;
        let dir = match self.directory(OFlags::NOATIME) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.directory(OFlags::empty())?
            }
            opened => opened?,
        };
        let mut buffer = Vec::with_capacity(NAMES_BUFFER_BYTES);
        let mut names = RawDir::new(&dir, buffer.spare_capacity_mut());
        let mut entries = Vec::new();
        while let Some(entry) = names.next() {
            entries.extend(entry_of(&dir, &entry?)?);
        }
        Ok(entries)
    }

    fn read_link(&self) -> io::Result<Vec<u8>> {
        match readlinkat(&self.fd, "", Vec::new()) {
            // What is no link has no target under the empty name.
            Err(Errno::NOENT) => Err(Errno::INVAL.into()),
            target => Ok(target?.into_bytes()),
        }
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.root.opener.check()?;
        Ok(fsync(&self.directory(OFlags::empty())?)?)
    }

    fn xattr(&self, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let value = xattr::value(&self.through(), name)?;
        let shown = self.kept_mode().filter(|_| name == acl::ACCESS);
        let list = shown.zip(value.as_deref().and_then(Acl::decode));
        Ok(list.map(|(shown, list)| list.with_mode(shown).encode()).or(value))
    }

    fn xattr_names(&self) -> io::Result<Vec<Vec<u8>>> {
        Ok(xattr::names(&self.through())?)
    }

    fn set_xattr(&self, name: &[u8], value: &[u8]) -> io::Result<()> {
        self.root.opener.check()?;
        match self.kept().filter(|_| name == acl::ACCESS) {
            Some(kept) => self.set_root_list(kept, value),
            None => Ok(xattr::set(&self.through(), name, value)?),
        }
    }

    fn remove_xattr(&self, name: &[u8]) -> io::Result<()> {
        self.root.opener.check()?;
        Ok(xattr::remove(&self.through(), name)?)
    }
}

/// A file system that has no such thing says nothing of it.
fn told<T: Default>(told: rustix::io::Result<T>) -> io::Result<T> {
    match told {
        Err(Errno::NOTTY | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(T::default()),
        told => Ok(told?),
    }
}

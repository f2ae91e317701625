//! The one door through which paths that a configuration or a user names are made and opened.
//!
//! Promise: a link that somebody else could have made is not followed, at any place of the path; a
//! file that is opened here is this user's or root's and nobody else writes it, and one that is
//! made here did not exist before; a name is removed only if it is what it should be.
//! Never: decides what a file is for, or mends more than the mode of this user's own file.
//!
//! Who counts as somebody else: everybody but this user, root, and the owner of `/`.

mod folder;
mod owner;
mod removal;
mod socket;

pub use folder::{Folder, Reach};
pub use owner::{Refusal, has_access_list, is_refusal, is_trusted};
pub use removal::remove_directory;
pub use socket::{NamedListener, check_listener, remove_socket};

use owner::{check_file, refused};

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, fstat};
use rustix::fs::{openat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// Where memory without a disk lies on this machine.
const MEMORY: &str = "/dev/shm";

/// Only this user.
const OWN: Mode = Mode::RUSR.union(Mode::WUSR);
/// Others may read.
const SHOWN: Mode = OWN.union(Mode::RGRP).union(Mode::ROTH);

/// What a name that is opened stays: never a link, never a terminal, and no waiting for somebody at
/// the other end.
const PLAIN: OFlags =
    OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NOCTTY).union(OFlags::NONBLOCK);

/// The folder in memory that is this user's alone. It is made by who first needs it, and checked at
/// each use.
#[must_use]
pub fn memory_folder() -> std::path::PathBuf {
    match rustix::process::geteuid().as_raw() {
        0 => Path::new(MEMORY).join("holdfast"),
        uid => Path::new(MEMORY).join(format!("holdfast.{uid}")),
    }
}

/// Opens a file or device that is there and is nobody else's.
///
/// # Errors
/// As the system says; `PermissionDenied` with a [`Refusal`] if somebody else could have put it
/// there, or can write it.
pub fn open(path: &Path, write: bool) -> io::Result<File> {
    let place = Place::find(path)?;
    place.folder.allow(Reach::Additions)?;
    place.open(access(write))
}

/// [`open`] to write what is a secret of this user's, which others cannot read any more from then
/// on. True if they could; a device stays as it is.
///
/// # Errors
/// As [`open`].
pub fn open_secret(path: &Path) -> io::Result<(File, bool)> {
    let file = open(path, true)?;
    let found = fstat(&file)?;
    let is_file = FileType::from_raw_mode(found.st_mode).is_file();
    let mode = Mode::from_raw_mode(found.st_mode);
    let is_lax = is_file && mode.intersects(Mode::RWXG | Mode::RWXO);
    // It may be root's, who has opened it to this user.
    let is_closed = is_lax && fchmod(&file, OWN).is_ok();
    Ok((file, is_closed))
}

/// Makes a file that is not there yet, readable and writable by this user alone.
///
/// # Errors
/// As the system says; `AlreadyExists` if anything has the name, a link too.
pub fn create(path: &Path) -> io::Result<File> {
    let place = Place::find(path)?;
    place.folder.allow(Reach::Additions)?;
    place.create(OWN)
}

/// Makes a file without a name, to write and read, on the disk that a directory is on. It is gone
/// with its last descriptor, whatever ends the process. On a file system without such files it has
/// a name for a moment.
///
/// # Errors
/// As the system says.
pub fn nameless_file(directory: &Path) -> io::Result<File> {
    let (folder, flags) = (Folder::find(directory)?, OFlags::RDWR | OFlags::CLOEXEC);
    match openat(folder.fd(), ".", flags | OFlags::TMPFILE, OWN) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOSYS) => {}
        made => return Ok(made?.into()),
    }
    let name = format!(".holdfast-{}", std::process::id());
    let new = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let file = openat(folder.fd(), &*name, new, OWN)?;
    unlinkat(folder.fd(), &*name, AtFlags::empty())?;
    Ok(file.into())
}

/// Opens a file for a lock, or makes it. True if its mode let others open it and no longer does.
///
/// # Errors
/// As [`open`] and [`create`].
pub fn lock_file(path: &Path) -> io::Result<(File, bool)> {
    let place = Place::find(path)?;
    place.folder.allow(Reach::Additions)?;
    loop {
        match place.open_to_mend(OFlags::RDWR) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match place.create(OWN) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return Ok((made?, false)),
            },
            opened => return opened,
        }
    }
}

/// Has a file hold these bytes: wholly, or what it held before. Only this user can read it.
///
/// # Errors
/// As the system says; `PermissionDenied` with a [`Refusal`] if others can change the folder, or if
/// what has the name is no file.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let place = Place::find(path)?;
    place.folder.allow(Reach::Nobody)?;
    place.replace(bytes, OWN)
}

/// Writes a file for people to read, in place of what has the name. The folder may be another's:
/// nothing is written outside it, or through a name that was there.
///
/// # Errors
/// As the system says.
pub fn write_report(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Place::find(path)?.replace(bytes, SHOWN)
}

/// Makes a file anew for what a program of ours has to say, in place of what has the name.
///
/// # Errors
/// As the system says.
pub fn create_anew(path: &Path) -> io::Result<File> {
    let place = Place::find(path)?;
    place.remove_file()?;
    place.create(OWN)
}

/// Removes a file, if it is there: never what a link leads to.
///
/// # Errors
/// As the system says.
pub fn remove(path: &Path) -> io::Result<()> {
    Place::find(path)?.remove_file()
}

/// Opens a directory that belongs to this user or root, or makes it with its parents: for this user
/// alone.
///
/// # Errors
/// As the system says; `PermissionDenied` with a [`Refusal`] if it is somebody else's.
pub fn directory(path: &Path) -> io::Result<OwnedFd> {
    Folder::find_or_make(path, Mode::RWXU)?.open_own()
}

/// [`directory`], if it is there.
///
/// # Errors
/// As [`directory`].
pub fn directory_there(path: &Path) -> io::Result<OwnedFd> {
    Folder::find(path)?.open_own()
}

/// Closes a directory of this user's to all others. True if they could open it until now.
///
/// # Errors
/// As the system says.
pub fn close_to_others(directory: &OwnedFd) -> io::Result<bool> {
    let found = fstat(directory)?;
    let is_own = found.st_uid == rustix::process::geteuid().as_raw();
    let is_lax = is_own && found.st_mode & 0o077 != 0;
    if is_lax {
        fchmod(directory, Mode::from_raw_mode(found.st_mode & 0o700))?;
    }
    Ok(is_lax)
}

/// [`memory_folder`], there and closed to others.
///
/// # Errors
/// As [`directory`].
pub fn make_memory_folder() -> io::Result<()> {
    close_to_others(&directory(&memory_folder())?).map(drop)
}

/// Opens a directory to mount something over, and says where it is without links. Whoever can
/// change the folder that it is in may decide about what is his own there, and no more.
///
/// # Errors
/// As the system says; `PermissionDenied` with a [`Refusal`] for a link of somebody else's, or a
/// directory that one user owns where another can change the names.
pub fn mount_point(path: &Path) -> io::Result<(OwnedFd, std::path::PathBuf)> {
    let point = Folder::to_mount_over(path)?;
    Ok((point.open()?, point.path().to_owned()))
}

/// Makes a directory in which others may look for names, if it is missing.
///
/// # Errors
/// As the system says.
pub fn public_directory(path: &Path) -> io::Result<Folder> {
    Folder::find_or_make(path, folder::PUBLIC)
}

/// Opens what is there, whosever it is, by a way that nobody else has chosen.
///
/// # Errors
/// As the system says; `PermissionDenied` with a [`Refusal`] for a link of somebody else's.
pub fn open_anybodys(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let place = Place::find(path)?;
    Ok(openat(place.folder.fd(), place.name(), flags | PLAIN, Mode::empty())?)
}

/// A name in a folder that was found.
struct Place {
    folder: Folder,
    name: std::ffi::OsString,
}

impl Place {
    fn find(path: &Path) -> io::Result<Place> {
        let (folder, name) = Folder::of(path)?;
        Ok(Place { folder, name })
    }

    fn name(&self) -> &OsStr {
        &self.name
    }

    fn at(&self, flags: OFlags, mode: Mode) -> io::Result<File> {
        Ok(openat(self.folder.fd(), self.name(), flags | PLAIN, mode)?.into())
    }

    /// Opens what is there, and refuses what somebody else owns or writes.
    fn open(&self, flags: OFlags) -> io::Result<File> {
        let file = self.at(flags, Mode::empty())?;
        check_file(&self.folder.path().join(&self.name), &fstat(&file)?)?;
        Ok(file)
    }

    /// [`Self::open`], and takes reading away from others.
    fn open_to_mend(&self, flags: OFlags) -> io::Result<(File, bool)> {
        let file = self.open_own(flags)?;
        let mode = Mode::from_raw_mode(fstat(&file)?.st_mode);
        let is_lax = mode.intersects(Mode::RWXG | Mode::RWXO);
        if is_lax {
            fchmod(&file, OWN)?;
        }
        Ok((file, is_lax))
    }

    /// Opens a plain file of this user's, whatever its mode.
    fn open_own(&self, flags: OFlags) -> io::Result<File> {
        let file = self.at(flags, Mode::empty())?;
        let mut found = fstat(&file)?;
        found.st_mode &= !0o022;
        check_file(&self.folder.path().join(&self.name), &found)?;
        match FileType::from_raw_mode(found.st_mode).is_file() {
            true => Ok(file),
            false => Err(refused(&self.folder.path().join(&self.name), "it is no file")),
        }
    }

    fn create(&self, mode: Mode) -> io::Result<File> {
        self.at(OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, mode)
    }

    fn remove_file(&self) -> io::Result<()> {
        match unlinkat(self.folder.fd(), self.name(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Only a file is replaced: a device, say, is somebody's.
    fn replace(self, bytes: &[u8], mode: Mode) -> io::Result<()> {
        match statat(self.folder.fd(), self.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            found if FileType::from_raw_mode(found?.st_mode).is_file() => {}
            _ => return Err(refused(&self.folder.path().join(&self.name), "it is no file")),
        }
        let mut name = self.name.clone();
        name.push(".new");
        let Place { folder, name: wanted } = self;
        let draft = Place { folder, name };
        draft.remove_file()?;
        let mut file = draft.create(mode)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        renameat(draft.folder.fd(), draft.name(), draft.folder.fd(), &wanted)?;
        draft.folder.sync()
    }
}

fn access(write: bool) -> OFlags {
    if write { OFlags::RDWR } else { OFlags::RDONLY }
}

#[cfg(test)]
mod tests;

//! Sockets with a name.
//!
//! Promise: a name is taken only from a socket at which nobody listens any more, by one of several
//! that try at the same moment; the socket is born with its mode.
//! Never: removes anything but a socket.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::owner::{is_trusted, refused};
use super::{Place, Reach, lock_file, memory_folder};
use crate::process::lives;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, chmodat, fchmod, flock, statat};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, listen, socket_with,
};

/// The name of the lock that all of one user's processes take while they look and bind.
const LOCK: &str = ".bind.lock";

/// As many wait at a socket as the standard library lets.
const BACKLOG: i32 = 128;

/// Who has the lock needs it for a few system calls: how often and how long it is waited for, five
/// seconds in all.
const TRIES: u32 = 1000;
const TRY_AGAIN: Duration = Duration::from_millis(5);

/// Listens at a path, in place of a socket at which nobody listens any more.
///
/// # Errors
/// `AddrInUse` if somebody listens there, or if what is there is no socket; else as the system
/// says; `PermissionDenied` with a [`super::Refusal`] if others can change the folder.
pub(super) fn bind(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let place = Place::find(path)?;
    place.folder.allow(Reach::Additions)?;
    let _alone = alone()?;
    match socket_there(&place)? {
        None => {}
        Some(false) => return Err(io::ErrorKind::AddrInUse.into()),
        Some(true) if answers(path)? => return Err(io::ErrorKind::AddrInUse.into()),
        Some(true) => place.remove_file()?,
    }
    let socket = new_socket(SocketFlags::CLOEXEC)?;
    // The kernel gives the name the mode that the socket has by now.
    fchmod(&socket, Mode::from_raw_mode(mode))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    // Less what the mask of the process has taken from it; nobody listens yet.
    chmodat(place.folder.fd(), place.name(), Mode::from_raw_mode(mode), AtFlags::empty())?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Refuses whoever listens behind a connection to a path if it is somebody else than this user,
/// root, or the owner of the folder: others may make names there, too.
///
/// # Errors
/// As the system says; `PermissionDenied` with a [`super::Refusal`] for somebody else;
/// `Unsupported` for who is in another namespace of processes.
pub fn check_listener(path: &Path, connection: impl AsFd) -> io::Result<()> {
    let user = socket_peercred(&connection).map_err(|error| match error.raw_os_error() {
        // The kernel has no number for a process that is not to be seen.
        0 => io::Error::new(
            io::ErrorKind::Unsupported,
            "who listens there is not to be seen from this namespace of processes",
        ),
        _ => error.into(),
    })?;
    let user = user.uid.as_raw();
    let folder = path.parent().and_then(|folder| std::fs::metadata(folder).ok());
    match is_trusted(user) || folder.is_some_and(|found| found.uid() == user) {
        true => Ok(()),
        false => Err(refused(path, format!("user {user} listens there"))),
    }
}

/// Removes a socket at which nobody listens, if it is there.
///
/// # Errors
/// As the system says; `AddrInUse` if it is no socket, or one at which somebody listens.
pub fn remove_socket(path: &Path) -> io::Result<()> {
    let place = Place::find(path)?;
    let _alone = alone()?;
    match socket_there(&place)? {
        None => Ok(()),
        Some(true) if !answers(path)? => place.remove_file(),
        Some(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

/// A socket that has a name now, told from any other that may have the name later.
#[derive(Debug)]
pub(super) struct SocketName {
    path: PathBuf,
    device_and_inode: (u64, u64),
}

impl SocketName {
    /// The socket at this path.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn of(path: &Path) -> io::Result<SocketName> {
        let found = std::fs::symlink_metadata(path)?;
        Ok(SocketName { path: path.to_owned(), device_and_inode: (found.dev(), found.ino()) })
    }

    /// Whether this socket still has the name: not if that is gone, or another's by now.
    #[must_use]
    fn is_kept(&self) -> bool {
        let found = SocketName::of(&self.path);
        found.is_ok_and(|found| found.device_and_inode == self.device_and_inode)
    }

    /// Takes the name away, if this socket still has it.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn remove(&self) -> io::Result<()> {
        let _alone = alone()?;
        let found = SocketName::of(&self.path)?;
        match found.device_and_inode == self.device_and_inode {
            true => Place::find(&self.path)?.remove_file(),
            false => Ok(()),
        }
    }
}

/// A socket at which somebody listens for as long as this is kept, whatever becomes of its name.
#[derive(Debug)]
pub struct NamedListener {
    listener: UnixListener,
    name: SocketName,
    mode: u32,
}

impl NamedListener {
    /// Listens at a path, in place of a socket at which nobody listens any more. Its folder is made
    /// if it is missing.
    ///
    /// # Errors
    /// `AddrInUse` if somebody listens there, or if what is there is no socket; else as the system
    /// says; `PermissionDenied` with a [`super::Refusal`] if others can change the folder.
    pub fn bind(path: &Path, mode: u32) -> io::Result<NamedListener> {
        super::public_directory(path.parent().unwrap_or(Path::new("/")))?;
        NamedListener::of(bind(path, mode)?, path, mode)
    }

    /// One that listens already, and is the one that the path leads to.
    ///
    /// # Errors
    /// As the system says: nothing may be there any more.
    pub fn of(listener: UnixListener, path: &Path, mode: u32) -> io::Result<NamedListener> {
        Ok(NamedListener { listener, name: SocketName::of(path)?, mode })
    }

    /// Whether clients find it: not if the name is gone, or another's by now.
    #[must_use]
    pub fn is_found(&self) -> bool {
        self.name.is_kept()
    }

    /// Listens anew if the name is gone, or is one at which nobody listens; true if so. Clients
    /// that are connected notice nothing.
    ///
    /// # Errors
    /// As [`Self::bind`]: `AddrInUse` if somebody else has the name.
    pub fn mend(&mut self) -> io::Result<bool> {
        if self.is_found() {
            return Ok(false);
        }
        *self = NamedListener::bind(&self.name.path, self.mode)?;
        Ok(true)
    }

    /// What takes clients, until [`Self::mend`] says that another does.
    #[must_use]
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Where it listens.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.name.path
    }

    /// Takes the name away, if this socket still has it.
    ///
    /// # Errors
    /// As the system says.
    pub fn remove(&self) -> io::Result<()> {
        self.name.remove()
    }
}

/// Whether a socket has the name; none if nothing has.
fn socket_there(place: &Place) -> io::Result<Option<bool>> {
    match statat(place.folder.fd(), place.name(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode) == FileType::Socket)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether somebody listens: also who is stopped, or has more clients waiting than it takes. A
/// process that has only inherited the socket, from one that is gone, does not count.
fn answers(path: &Path) -> io::Result<bool> {
    let socket = new_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
        Err(_) => Ok(true),
        Ok(()) => Ok(socket_peercred(&socket)
            .map_or(true, |began| lives(began.pid.as_raw_pid().unsigned_abs()))),
    }
}

fn new_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// The lock of this user's on binding, until dropped.
fn alone() -> io::Result<File> {
    super::make_memory_folder()?;
    let (file, _) = lock_file(&memory_folder().join(LOCK))?;
    for _ in 0..TRIES {
        match flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(TRY_AGAIN),
            taken => {
                taken?;
                return Ok(file);
            }
        }
    }
    let why = "another process of yours has been looking at a socket for 5 s; see to it";
    Err(io::Error::new(io::ErrorKind::TimedOut, why))
}

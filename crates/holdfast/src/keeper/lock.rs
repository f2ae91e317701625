//! Who may have what.
//!
//! Promise: one keeper a socket, one volume a home and a log directory. The locks are the kernel's,
//! so they are gone exactly when the last process that holds them is; nothing is left to clean up.
//! Never: writes into a home or a log directory.

use crate::exit::Exit;
use crate::problem::{Outcome, Problem};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a lock is tried for before somebody else is said to have it.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// The right to be the keeper behind a socket, held until dropped.
#[derive(Debug)]
pub(crate) struct KeeperLock {
    _file: File,
}

impl KeeperLock {
    /// Takes the lock file that stands beside the socket and writes our process id into it.
    pub(crate) fn take(socket: &Path) -> Outcome<KeeperLock> {
        let path = lock_path(socket);
        let what = format!("locking {}", path.display());
        let failed = |error: std::io::Error| {
            Problem::new(Exit::Failed, what.clone(), error, "run as root, or set keeper.socket")
        };
        let mut open = File::options();
        let open = open.read(true).write(true).create(true).truncate(false);
        let mut file = open.open(&path).map_err(failed)?;
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            return match error {
                Errno::WOULDBLOCK => Err(held(&mut file, socket)),
                error => Err(failed(error.into())),
            };
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
        Ok(KeeperLock { _file: file })
    }
}

fn lock_path(socket: &Path) -> PathBuf {
    let mut path = socket.to_owned().into_os_string();
    path.push(".lock");
    path.into()
}

fn held(file: &mut File, socket: &Path) -> Problem {
    let mut pid = String::new();
    let _ = file.read_to_string(&mut pid);
    let what = "starting the keeper";
    let why = format!("the keeper with pid {} has {}", pid.trim(), socket.display());
    Problem::new(Exit::InUse, what, why, "use it, or stop it with SIGTERM first")
}

/// Opens a directory and takes it for one volume. The lock lives as long as any process has this
/// descriptor or an inherited copy of it: the keeper and its front ends, whichever ends last.
pub(crate) fn take_directory(key: &str, path: &Path) -> Outcome<OwnedFd> {
    take(key, path, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// Opens a home and takes it for one volume, as [`take_directory`]: a directory, or the file or
/// block device of a block volume. The kernel refuses a device that is mounted, and mounting it.
pub(crate) fn take_home(path: &Path) -> Outcome<OwnedFd> {
    let what = || format!("taking home {}", path.display());
    let refused = |why: &str, remedy: &str| Err(Problem::new(Exit::Usage, what(), why, remedy));
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() && found.len() == 0 => {
            refused("the file is empty", "give it the size of the disk with `truncate -s SIZE`")
        }
        Ok(found) if found.is_file() => take("home", path, OFlags::RDWR),
        Ok(found) if found.file_type().is_block_device() => {
            take("home", path, OFlags::RDWR | OFlags::EXCL)
        }
        Ok(found) if !found.is_dir() => refused(
            "it is neither a directory nor a file nor a block device",
            "name one of them as home",
        ),
        // What cannot be looked at cannot be opened either, and that is told below.
        _ => take_directory("home", path),
    }
}

fn take(key: &str, path: &Path, flags: OFlags) -> Outcome<OwnedFd> {
    let what = || format!("taking {key} {}", path.display());
    let in_use = || {
        Problem::new(
            Exit::InUse,
            what(),
            "it is mounted, or another volume, or a front end whose keeper is gone, is attached to \
             it",
            "see `holdfast status`; `holdfast umount` gives it back",
        )
    };
    let opened = patiently(|| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()));
    let descriptor = opened.map_err(|error| match error {
        Errno::BUSY => in_use(),
        Errno::NOTDIR => Problem::new(
            Exit::Usage,
            what(),
            "it is not a directory",
            format!("name a directory as {key}"),
        ),
        Errno::NOENT => Problem::new(
            Exit::Usage,
            what(),
            "it does not exist",
            match key {
                "log" => "make it with `holdfast volume make`, or mount the file system it is on",
                _ => "make it, or mount the file system it is on, or correct the configuration",
            },
        ),
        error => Problem::new(Exit::Failed, what(), error, "run as root"),
    })?;
    match patiently(|| flock(&descriptor, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => Ok(descriptor),
        Err(Errno::WOULDBLOCK) => Err(in_use()),
        Err(error) => Err(Problem::new(Exit::Failed, what(), error, "it must support flock")),
    }
}

/// A process that has just ended, or been killed, lets go of its descriptors last of all.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let started = Instant::now();
    loop {
        match attempt() {
            Err(Errno::WOULDBLOCK | Errno::BUSY) if started.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests;

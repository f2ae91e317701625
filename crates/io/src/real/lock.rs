//! A directory for one owner.
//!
//! Promise: of all openers on this machine, in one process or in several, one has the lock; the
//! kernel drops it when its holder dies, however it dies. No other user comes near the lock of a
//! directory that was made here.
//! Never: lets go of a lock, or of a directory, in a process that was forked from the one that has
//! it; writes into the directory, waits longer than its patience.

use std::fs::{DirBuilder, File, remove_dir};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

use crate::Opener;

/// A process that was just killed lets go of its descriptors last of all: how often and how long
/// one waits for that, a fifth of a second in all.
const TRIES: u32 = 40;
const TRY_AGAIN: Duration = Duration::from_millis(5);

/// Directories that were made for what is to come to lie in them. Unless it is said that it does,
/// they go again when this is dropped, as far as they are empty.
#[derive(Debug, Default)]
pub struct MadeDirectories {
    paths: Mutex<Vec<PathBuf>>,
    opener: Opener,
}

impl MadeDirectories {
    /// Makes a directory for its owner alone, unless something is there. Its name is durable then.
    /// Whoever can open a directory can lock it, and so keep its owner out.
    ///
    /// # Errors
    /// The system refused it.
    pub fn make(&self, path: &Path) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => {
                self.paths().push(path.to_owned());
                File::open(parent_of(path))?.sync_all()
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Those on the way to `path` that are missing, and that somebody is about to make.
    #[must_use]
    pub fn missing(path: &Path) -> MadeDirectories {
        let is_not_found = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
        let is_missing = |path: &&Path| path.symlink_metadata().is_err_and(is_not_found);
        let mut missing: Vec<PathBuf> =
            path.ancestors().take_while(is_missing).map(Path::to_owned).collect();
        missing.reverse();
        MadeDirectories { paths: Mutex::new(missing), opener: Opener::this_process() }
    }

    /// What they were made for lies there.
    pub fn keep(&self) {
        self.paths().clear();
    }

    fn paths(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for MadeDirectories {
    fn drop(&mut self) {
        if !self.opener.is_here() {
            return;
        }
        for path in self.paths().drain(..).rev() {
            // One with something in it stays, and so does one that somebody else has put there.
            let _stays = remove_dir(path);
        }
    }
}

fn parent_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// The exclusive lock on a directory, held until dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    fd: OwnedFd,
    opener: Opener,
}

impl DirectoryLock {
    /// Takes the lock on `directory`, or `None` if somebody else has it.
    ///
    /// # Errors
    /// The directory cannot be opened, or its file system knows no locks.
    pub fn take(directory: &Path) -> io::Result<Option<DirectoryLock>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open(directory, flags, Mode::empty())?;
        let lock = DirectoryLock { fd, opener: Opener::this_process() };
        for _ in 0..TRIES {
            match flock(&lock.fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(lock)),
                Err(Errno::WOULDBLOCK) => sleep(TRY_AGAIN),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing is not enough: a child being started by another thread holds a copy of the
        // descriptor until it runs its own program. Should this fail, the close still follows.
        // A child that was forked to stay closes its copy, and leaves the lock to its parent.
        if self.opener.is_here() {
            let _ = flock(&self.fd, FlockOperation::Unlock);
        }
    }
}

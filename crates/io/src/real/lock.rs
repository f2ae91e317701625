//! A directory for one owner.
//!
//! Promise: of all openers on this machine, in one process or in several, one has the lock; the
//! kernel drops it when its holder dies, however it dies. No other user comes near the lock of a
//! directory that was made here.
//! Never: writes into the directory, waits longer than its patience.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

/// A process that was just killed lets go of its descriptors last of all: how often and how long
/// one waits for that, a fifth of a second in all.
const TRIES: u32 = 40;
const TRY_AGAIN: Duration = Duration::from_millis(5);

/// Makes a directory for its owner alone, unless something is there. Its name is durable then.
/// Whoever can open a directory can lock it, and so keep its owner out.
///
/// # Errors
/// The system refused it.
pub fn make_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => File::open(parent_of(path))?.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn parent_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// The exclusive lock on a directory, held until dropped.
#[derive(Debug)]
pub struct DirectoryLock(OwnedFd);

impl DirectoryLock {
    /// Takes the lock on `directory`, or `None` if somebody else has it.
    ///
    /// # Errors
    /// The directory cannot be opened, or its file system knows no locks.
    pub fn take(directory: &Path) -> io::Result<Option<DirectoryLock>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = DirectoryLock(open(directory, flags, Mode::empty())?);
        for _ in 0..TRIES {
            match flock(&lock.0, FlockOperation::NonBlockingLockExclusive) {
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
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

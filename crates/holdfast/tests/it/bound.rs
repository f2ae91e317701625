//! A second place of a directory, for as long as a test wants it: seen by every test beside it, and
//! copied by none of them.
//!
//! Whoever copies the table of mounts meanwhile has the place for as long as he lives, and a home
//! is rightly refused for that. So nobody mounts while somebody copies, nor the other way round.

use rustix::mount::{UnmountFlags, mount_bind, unmount};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static MOUNTS: Mutex<()> = Mutex::new(());

/// Held by whoever copies the table of mounts, until he has it.
pub(crate) fn alone_with_the_mounts() -> MutexGuard<'static, ()> {
    // A test that failed meanwhile has unmounted what it had.
    MOUNTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is mounted at a second place, until it is dropped.
pub(crate) struct Bound {
    place: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Bound {
    /// Makes the place as well, where it is not there yet.
    pub(crate) fn at(place: PathBuf, what: &Path) -> Bound {
        let alone = alone_with_the_mounts();
        fs::create_dir_all(&place).unwrap();
        mount_bind(what, &place).unwrap();
        Bound { place, _alone: alone }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // In a test that fails, there may be nothing any more.
        let _ = unmount(&self.place, UnmountFlags::DETACH);
    }
}

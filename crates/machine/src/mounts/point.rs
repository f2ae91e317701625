//! The directory that is mounted over.
//!
//! Promise: it is opened once, by a way that nobody else has chosen, and what was looked at is what
//! is mounted over, whatever its names lead to by then; a home, or what is in any other directory,
//! is not hidden by mistake.
//! Never: follows a link that somebody else can have made.

use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_front::fuse::{MountError, MountOptions, mount_on};
use holdfast_io::private;
use rustix::fs::{Dir, fstat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A directory, held open, over which something may be mounted.
#[derive(Debug)]
pub struct MountPoint {
    directory: OwnedFd,
    path: PathBuf,
}

impl MountPoint {
    /// Finds it: it is the home itself, or has nothing in it.
    pub fn find(what: &str, path: &Path, home: Option<&OwnedFd>) -> Outcome<MountPoint> {
        let (directory, at) =
            private::mount_point(path).map_err(|error| unusable(what, path, error))?;
        let point = MountPoint { directory, path: at };
        if home.is_some_and(|home| is_same(home, &point.directory)) {
            return Ok(point);
        }
        match point.first_name().map_err(|error| unusable(what, path, error))? {
            None => Ok(point),
            Some(name) => Err(Problem::new(
                Exit::Usage,
                what,
                format!(
                    "the mount point {} is not empty: it has {name:?}, which would be hidden",
                    path.display()
                ),
                "move what is in it, or name an empty directory as mount",
            )),
        }
    }

    /// Mounts over it; `whose` it is, for people.
    pub fn mount(&self, whose: &str, source: &str) -> Outcome<OwnedFd> {
        let options = MountOptions { name: source.to_owned() };
        mount_on(&self.directory, &options).map_err(|error| {
            let what = format!("attaching {whose} at {}", self.path.display());
            Problem::new(Exit::Failed, what, error, "nothing was changed")
        })
    }

    fn first_name(&self) -> io::Result<Option<OsString>> {
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                return Ok(Some(name.to_owned()));
            }
        }
        Ok(None)
    }
}

/// Refuses a mount point whose name others can lead elsewhere. One that is not there is not looked
/// at, nor is one that something is mounted over.
pub(crate) fn check_way(what: &str, path: &Path) -> Outcome<()> {
    match private::mount_point(path) {
        Err(error) if private::is_refusal(&error) => Err(unusable(what, path, error)),
        _ => Ok(()),
    }
}

fn unusable(what: &str, path: &Path, error: io::Error) -> Problem {
    if private::is_refusal(&error) {
        let remedy = "name as mount an empty directory that no other user leads elsewhere";
        let why = format!("the mount point {}: {error}", path.display());
        return Problem::new(Exit::Usage, what, why, remedy);
    }
    let error = MountError::at(path, error);
    let exit =
        if matches!(error, MountError::NotADirectory(_)) { Exit::Usage } else { Exit::Failed };
    Problem::new(exit, what, error, "nothing was changed")
}

fn is_same(one: &OwnedFd, other: &OwnedFd) -> bool {
    let id = |of| fstat(of).map(|found| (found.st_dev, found.st_ino));
    id(one).is_ok_and(|one| id(other) == Ok(one))
}

#[cfg(test)]
mod tests;

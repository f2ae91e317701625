//! A folder for a measurement.
//!
//! Promise: it is gone when it is dropped.
//! Never: touches anything beside it, whatever has its name by then.

use holdfast_io::private::{directory_there, remove_directory};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A folder that is removed when it is dropped.
pub(super) struct Folder {
    path: PathBuf,
    held: OwnedFd,
}

impl Folder {
    /// Makes a folder of this process in a directory.
    pub(super) fn make(directory: &Path) -> io::Result<Folder> {
        let folder = directory.join(format!("holdfast-bench-{}", std::process::id()));
        Folder::new(folder)
    }

    /// Makes a folder that is missing.
    pub(super) fn new(path: PathBuf) -> io::Result<Folder> {
        std::fs::create_dir(&path)?;
        Ok(Folder { held: directory_there(&path)?, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed costs room and nothing else.
        let _left = remove_directory(&self.path, &self.held);
    }
}

//! A folder for a measurement.
//!
//! Promise: it is gone when it is dropped.
//! Never: touches anything beside it.

use std::io;
use std::path::{Path, PathBuf};

/// A folder that is removed when it is dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes a folder of this process in a directory.
    pub(super) fn make(directory: &Path) -> io::Result<Folder> {
        let folder = directory.join(format!("holdfast-bench-{}", std::process::id()));
        std::fs::create_dir(&folder)?;
        Ok(Folder(folder))
    }

    /// A place in a folder that somebody else makes.
    pub(super) fn at(path: PathBuf) -> Folder {
        Folder(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed costs room and nothing else.
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

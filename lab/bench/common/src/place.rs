//! Where files lie while they are measured.
//!
//! Promise: each run has a new folder, on the disk of this program or in memory, with nothing of an
//! earlier run left to be written to the device; it is gone when the run is over, or when the next
//! begins.
//! Never: touches anything outside; serves two runs of this program at a time.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Where Linux has memory that looks like a disk.
const MEMORY: &str = "/dev/shm";

/// A folder that is removed when it is dropped.
pub struct Place(PathBuf);

impl Place {
    /// The folder of all others, beside this program.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn whole(name: &str) -> io::Result<Place> {
        Place::anew(std::env::current_exe()?.with_file_name(name))
    }

    /// The same in a file system that is memory.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn in_memory(name: &str) -> io::Result<Place> {
        Place::anew(Path::new(MEMORY).join(name))
    }

    fn anew(path: PathBuf) -> io::Result<Place> {
        if path.exists() {
            // An interrupted run could not.
            fs::remove_dir_all(&path)?;
        }
        Place::empty(path)
    }

    /// A new folder in this one.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn folder(&self, name: &str) -> io::Result<Place> {
        let place = Place::empty(self.0.join(name))?;
        place.settle()?;
        Ok(place)
    }

    /// A new folder in this one, with copies of a folder's files.
    ///
    /// # Errors
    /// If one of them cannot be made.
    pub fn copy(&self, name: &str, from: &Path) -> io::Result<Place> {
        let place = Place::empty(self.0.join(name))?;
        copy(from, &place.0)?;
        place.settle()?;
        Ok(place)
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns when the device has everything of the whole file system.
    ///
    /// # Errors
    /// If it does not take it.
    pub fn settle(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(File::open(&self.0)?)?)
    }

    fn empty(path: PathBuf) -> io::Result<Place> {
        fs::create_dir_all(&path)?;
        Ok(Place(path))
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let (entry, path) = entry.map(|entry| (entry.file_name(), entry.path()))?;
        let target = to.join(entry);
        if path.is_dir() {
            fs::create_dir_all(&target)?;
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed costs room and nothing else.
        let _left = fs::remove_dir_all(&self.0);
    }
}

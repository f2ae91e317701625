//! Where regions in shared memory are that the configuration gives no path.
//!
//! Promise: a folder of this user's alone, so that nobody else can have a file there first; a
//! region that an earlier version made beside that folder is found where it is.
//! Never: makes anything, or takes what is not this user's alone.

use holdfast_io::private;
use std::path::{Path, PathBuf};

/// What stands before the name of a region that an earlier version made.
const OLD_PREFIX: &str = "holdfast-";

/// The file of a region of this name.
pub fn region_of(name: &str) -> PathBuf {
    private::memory_folder().join(name)
}

/// Where the region for this path is now: there, unless only an earlier version has made one.
pub(crate) fn where_it_is(path: PathBuf) -> PathBuf {
    match old_place(&path, &private::memory_folder()) {
        Some(old) if !path.exists() && private::open(&old, false).is_ok() => old,
        _ => path,
    }
}

/// Where earlier versions made the region for a path in this folder.
fn old_place(path: &Path, folder: &Path) -> Option<PathBuf> {
    if path.parent() != Some(folder) {
        return None;
    }
    let name = path.file_name()?.to_str()?;
    Some(folder.with_file_name(format!("{OLD_PREFIX}{name}")))
}

#[cfg(test)]
mod tests;

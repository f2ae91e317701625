//! The directories of a store.
//!
//! Promise: their names are the same in every store.
//! Never: opens one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_io::Files;

/// The directory of the log, below that of the store.
pub(crate) const LOG: &str = "log";

/// The directory of the archive, below that of the store.
pub(crate) const ARCHIVE: &str = "archive";

/// Directories of a store, which a new one has before it has files.
pub(crate) const DIRECTORIES: [&str; 2] = [LOG, ARCHIVE];

/// The directories of a store: its own, and those of its log and its archive, which may lie
/// anywhere.
#[derive(Clone)]
pub struct Directories {
    /// Pages, and what is known of them.
    pub store: Arc<dyn Files>,
    /// Segments of the log.
    pub log: Arc<dyn Files>,
    /// Runs of the archive.
    pub archive: Arc<dyn Files>,
}

impl fmt::Debug for Directories {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Directories").finish_non_exhaustive()
    }
}

/// Where the archive of a store in this directory is, unless it is elsewhere.
pub fn archive_of(directory: &Path) -> PathBuf {
    directory.join(ARCHIVE)
}

/// Where the log of a store in this directory lies.
#[must_use]
pub fn log_of(directory: &Path) -> PathBuf {
    directory.join(LOG)
}

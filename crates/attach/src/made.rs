//! Whether a directory has a log.
//!
//! Promise: one of the files that make a directory a log is enough, whatever its state.
//! Never: opens a log.

use holdfast_log::is_segment_name;
use holdfast_machine::lock::CATALOGUES;
use std::io::ErrorKind;
use std::path::Path;

/// True if the directory holds the log of a volume, whatever its state.
pub fn is_made(log: &Path) -> bool {
    CATALOGUES.iter().any(|name| log.join(name).exists())
}

/// True if the directory holds anything that a log has made, whole or not.
pub fn has_remains(log: &Path) -> bool {
    let is_of_log = |name: &str| is_segment_name(name) || name.starts_with(CATALOGUES[0]);
    let names = std::fs::read_dir(log).into_iter().flatten().flatten().map(|it| it.file_name());
    names.filter_map(|name| name.into_string().ok()).any(|name| is_of_log(&name))
}

/// Whether the directory holds the log of a volume, if this user may know.
pub fn may_be_made(log: &Path) -> Option<bool> {
    let mut known = Some(false);
    for name in CATALOGUES {
        match log.join(name).try_exists() {
            Ok(true) => return Some(true),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => known = None,
            _ => {}
        }
    }
    known
}

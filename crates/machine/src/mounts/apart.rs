//! Whether what another process mounted is seen here.
//!
//! Promise: a mount that the table here does not have is one of another mount namespace only if
//! that process is known to be in another one, or is none of those that are seen here.
//! Never: opens, stats or lists anything below a mount point.

use super::our_mount_at;
use crate::processes::{Process, ask};
use std::path::{Path, PathBuf};

/// Whether what this process mounted at this place, by this name of a volume, is not seen here.
pub fn is_mounted_apart(point: &Path, source: &str, by: u32) -> bool {
    if our_mount_at(point, source).is_some() {
        return false;
    }
    let theirs = namespace_of(by);
    theirs.is_none() || theirs != namespace_of(std::process::id())
}

fn namespace_of(pid: u32) -> Option<PathBuf> {
    ask(pid, |it: &Process| it.link("ns/mnt")).flatten()
}

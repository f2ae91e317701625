//! The sections of what the keeper has from its start to its end: logs, disks, tables, snapshots.
//!
//! Promise: two sections that share a path could not be served at the same time.
//! Never: looks at the machine.

use super::{DiskConfig, ServedLogConfig, SnapshotConfig, TableConfig};
use std::path::Path;

/// A section of the configuration.
pub(crate) trait Section: PartialEq {
    /// The word before its name.
    const KIND: &'static str;

    /// The paths that are its own, by their keys.
    fn paths(&self) -> Vec<(&'static str, &Path)>;
}

fn region(path: Option<&Path>) -> impl Iterator<Item = (&'static str, &Path)> {
    path.into_iter().map(|path| ("memory.path", path))
}

impl Section for ServedLogConfig {
    const KIND: &'static str = "log";

    fn paths(&self) -> Vec<(&'static str, &Path)> {
        [("log", &*self.log)].into_iter().chain(region(self.memory.path.as_deref())).collect()
    }
}

impl Section for DiskConfig {
    const KIND: &'static str = "disk";

    fn paths(&self) -> Vec<(&'static str, &Path)> {
        let nbd = self.nbd.iter().filter_map(|address| address.path()).map(|path| ("nbd", path));
        let vhost_user = self.vhost_user.as_deref().map(|path| ("vhost-user", path));
        let mount = self.mount.as_deref().map(|path| ("mount", path));
        region(self.memory.path.as_deref()).chain(nbd).chain(vhost_user).chain(mount).collect()
    }
}

impl Section for TableConfig {
    const KIND: &'static str = "table";

    fn paths(&self) -> Vec<(&'static str, &Path)> {
        [("store", &*self.store)].into_iter().chain(region(self.memory.path.as_deref())).collect()
    }
}

impl Section for SnapshotConfig {
    const KIND: &'static str = "snapshot";

    fn paths(&self) -> Vec<(&'static str, &Path)> {
        region(self.memory.path.as_deref()).collect()
    }
}

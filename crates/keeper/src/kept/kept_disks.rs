//! What a service manager kept of the mounts of disks, for a keeper that comes after one that was
//! killed. The front ends of the earlier one have ended with it.
//!
//! Promise: a disk on whose mount programs may be is taken up as it was kept, whatever the
//! configuration says by now; a mount is let go of only if no program can reach it any more.
//! Never: has a mount kept anew; that is whose front end serves it.

use crate::kept::part_names::part_name;
use crate::kept::remains::{FUSE, SETTINGS};
use crate::kept::settings;
use holdfast_config::DiskConfig;
use holdfast_machine::mounts::disk_source;
use holdfast_machine::mounts::served::{is_connected, mount_of};
use holdfast_machine::service_manager::ServiceManager;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What was kept of one disk.
#[derive(Debug)]
struct Parts {
    fuse: OwnedFd,
    settings: Option<OwnedFd>,
}

/// What was kept of disks and is not taken up yet, by name.
#[derive(Debug)]
pub(crate) struct KeptDisks {
    manager: Arc<ServiceManager>,
    parts: Mutex<BTreeMap<String, Parts>>,
}

impl KeptDisks {
    /// Everything that was kept of disks with mounts.
    pub(crate) fn of(manager: &Arc<ServiceManager>) -> KeptDisks {
        let prefix = named(FUSE, "");
        let given = manager.names().into_iter();
        let parts = given.filter_map(|given| {
            let name = given.strip_prefix(&prefix)?;
            let settings = manager.take(&named(SETTINGS, name));
            Some((name.to_owned(), Parts { fuse: manager.take(&given)?, settings }))
        });
        let parts = Mutex::new(parts.collect());
        KeptDisks { manager: Arc::clone(manager), parts }
    }

    /// The disks of which something is kept and not taken up.
    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// As what a disk is taken up whose mount is kept, if it is known; `now` is how it is
    /// configured. Without that it stays kept as it is.
    pub(crate) fn kept_as(&self, name: &str, now: Option<&DiskConfig>) -> Option<DiskConfig> {
        self.let_go_if_over(name);
        let parts = self.lock();
        let Parts { fuse, settings } = parts.get(name)?;
        // An earlier version kept the mount alone.
        let without_settings = || {
            let now = now?.clone();
            let looked_for = now.mount.as_deref().unwrap_or(Path::new("/"));
            let mount = mount_of(fuse, looked_for, &disk_source(name)).map(|it| it.point);
            Some(DiskConfig { mount: mount.or(now.mount.clone()), ..now })
        };
        settings.as_ref().and_then(settings::read).or_else(without_settings)
    }

    /// Copies of the connection, and of the settings, if they are kept. Until [`Self::taken`], they
    /// stay as they were kept.
    pub(crate) fn held(&self, name: &str) -> Option<(OwnedFd, Option<OwnedFd>)> {
        self.let_go_if_over(name);
        let parts = self.lock();
        let Parts { fuse, settings } = parts.get(name)?;
        let settings = settings.as_ref().and_then(|it| it.try_clone().ok());
        Some((fuse.try_clone().ok()?, settings))
    }

    /// Somebody has it all now, and sees to what is kept.
    pub(crate) fn taken(&self, name: &str) {
        self.lock().remove(name);
    }

    fn let_go_if_over(&self, name: &str) {
        let mut parts = self.lock();
        if parts.get(name).is_some_and(|it| !is_connected(&it.fuse)) {
            parts.remove(name);
            [FUSE, SETTINGS].iter().for_each(|part| self.manager.forget(&named(part, name)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Parts>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn named(part: &str, name: &str) -> String {
    part_name(part, &format!("disk {name}"))
}

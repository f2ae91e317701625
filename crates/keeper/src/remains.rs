//! What a service manager keeps of a volume or a disk, for a keeper that comes after this one was
//! killed.
//!
//! Promise: a volume is taken up as it was kept, or what was kept of it is let go; a volume that is
//! given back is kept no longer.
//! Never: uses a part of what was kept beside parts of its own.

use crate::held::Held;
use crate::kept::Kept;
use crate::listeners::Listeners;
use crate::part_names::{part_name, socket_name};
use holdfast_attach::observe::observe;
use holdfast_config::{Config, DiskConfig, VolumeConfig, Way};
use holdfast_machine::holders::signal;
use holdfast_machine::mounts::disk_source;
use holdfast_machine::mounts::served::mount_of;
use holdfast_machine::service_manager::ServiceManager;
use rustix::process::Signal;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// What is kept beside sockets.
const PARTS: [&str; 3] = [FUSE, LOG, HOME];
const FUSE: &str = "kept-fuse";
const LOG: &str = "kept-log";
const HOME: &str = "kept-home";

impl Kept {
    /// Has everything kept that outlives a front end of `whose`: "volume NAME" or "disk NAME".
    pub(crate) fn new(manager: &Arc<ServiceManager>, whose: &str, held: &Held) -> Kept {
        let mut kept = Kept { manager: Arc::clone(manager), names: Vec::new() };
        let (log, home) = (held.log.as_ref().map(AsFd::as_fd), held.home.as_ref().map(AsFd::as_fd));
        for (part, descriptor) in PARTS.iter().zip([held.fuse.as_ref().map(AsFd::as_fd), log, home])
        {
            descriptor.into_iter().for_each(|it| kept.keep(part_name(part, whose), it));
        }
        for (place, socket) in held.listeners.own_descriptors() {
            kept.keep(socket_name(whose, place), socket);
        }
        kept
    }

    /// Has the directory of its log kept in the place of the one that was there.
    pub(crate) fn keep_log_anew(&mut self, whose: &str, log: &OwnedFd) {
        let name = part_name(LOG, whose);
        self.manager.forget(&name);
        self.manager.keep(&name, log.as_fd());
    }
}

/// What was kept of a volume, if it can be taken up. Nobody may serve it: see [`end_remains`].
pub(crate) fn take_back(
    manager: &ServiceManager,
    name: &str,
    volume: &VolumeConfig,
) -> Option<Held> {
    let names = PARTS.map(|part| part_name(part, &format!("volume {name}")));
    let [fuse, log, home] = names.each_ref().map(|name| manager.take(name));
    let mount = fuse.as_ref().zip(volume.mount.as_deref());
    let is_mounted = mount.is_some_and(|(it, at)| mount_of(it, at, name).is_some());
    let is_whole = home.is_some()
        && log.is_some() == (volume.way == Way::Direct)
        && [fuse.is_some(), is_mounted] == [volume.mount.is_some(); 2];
    if !is_whole {
        names.iter().for_each(|name| manager.forget(name));
        return None;
    }
    let (fuse, listeners, was_served) = (fuse.map(Arc::new), Listeners::default(), true);
    Some(Held { home, log, fuse, listeners, handover: None, kept: None, was_served })
}

/// The connection behind the mount of a disk, if one was kept and the mount is still there. The
/// front end of the earlier keeper has ended with it.
pub(crate) fn take_back_mount(
    manager: &ServiceManager,
    name: &str,
    disk: &DiskConfig,
) -> Option<OwnedFd> {
    let part = part_name(FUSE, &format!("disk {name}"));
    let kept = manager.take(&part)?;
    let source = disk_source(name);
    let mount = disk.mount.as_deref().and_then(|point| mount_of(&kept, point, &source));
    if mount.is_none() {
        manager.forget(&part);
    }
    mount.map(|_| kept)
}

/// Ends the front ends and the server that outlived the keeper of volumes that are kept. What they
/// acknowledged is in the regions, and those that come next repeat what was under way.
pub(crate) fn end_remains(manager: &ServiceManager, config: &Config) {
    let is_kept = |name: &String| manager.has(&part_name(HOME, &format!("volume {name}")));
    for (name, volume) in config.volumes.iter().filter(|(name, _)| is_kept(name)) {
        let pids = || {
            let seen = observe(&volume.medium()).ok();
            let pids = seen.map(|seen| [seen.front_end_pid, seen.server_pid]);
            pids.into_iter().flatten().flatten().collect::<Vec<_>>()
        };
        for pid in pids() {
            tracing::info!(volume = name, pid, "ending what outlived its keeper");
            let _may_have_ended = signal(pid, Signal::KILL, || pids().contains(&pid));
        }
    }
}

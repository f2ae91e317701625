//! What a service manager keeps of a volume, for a keeper that comes after this one was killed.
//!
//! Promise: a volume is taken up as it was kept, or what was kept of it is let go; a volume that is
//! given back is kept no longer.
//! Never: uses a part of what was kept beside parts of its own.

use super::listeners::Listeners;
use super::mounts::mounted_at;
use super::spawn::Held;
use crate::config::{VolumeConfig, Way};
use crate::observe::observe;
use crate::service_manager::ServiceManager;
use rustix::process::{Pid, Signal, kill_process};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Keeps the parts of one volume until it is dropped.
#[derive(Debug)]
pub(crate) struct Kept {
    manager: Arc<ServiceManager>,
    names: Vec<String>,
}

impl Kept {
    /// Has everything kept that outlives a front end.
    pub(crate) fn new(manager: &Arc<ServiceManager>, volume: &str, held: &Held) -> Kept {
        let mut kept = Kept { manager: Arc::clone(manager), names: Vec::new() };
        held.log.iter().for_each(|log| kept.keep(name("log", volume), log.as_fd()));
        held.fuse.iter().for_each(|fuse| kept.keep(name("fuse", volume), fuse.as_fd()));
        for (place, socket) in held.listeners.own_descriptors() {
            kept.keep(socket_name(volume, place), socket);
        }
        // Last: without it the rest is of no use.
        kept.keep(name("home", volume), held.home.as_fd());
        kept
    }

    fn keep(&mut self, name: String, descriptor: BorrowedFd<'_>) {
        self.manager.keep(&name, descriptor);
        self.names.push(name);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // The home first, as it was kept last.
        self.names.iter().rev().for_each(|name| self.manager.forget(name));
    }
}

/// What was kept of a volume, if it can be taken up. Its front end, if one lives on, is ended: what
/// it acknowledged is in the region, and the next one repeats what was under way.
pub(crate) fn take_back(
    manager: &ServiceManager,
    name_of: &str,
    volume: &VolumeConfig,
) -> Option<Held> {
    let [home, log, fuse] = ["home", "log", "fuse"].map(|part| manager.take(&name(part, name_of)));
    let is_mounted = volume.mount.as_deref().is_some_and(|point| {
        mounted_at(point).is_some_and(|mount| mount.is_ours() && mount.source == name_of)
    });
    let is_whole = home.is_some()
        && log.is_some() == (volume.way == Way::Direct)
        && (fuse.is_some() && is_mounted) == volume.mount.is_some();
    let (true, Some(home)) = (is_whole, home) else {
        ["home", "log", "fuse"].iter().for_each(|part| manager.forget(&name(part, name_of)));
        return None;
    };
    end_front_end(name_of, volume);
    let listeners = Listeners::default();
    Some(Held { home, log, fuse, listeners, handover: None, kept: None, was_served: true })
}

/// The name under which the socket at this place among the volume's is kept.
pub(crate) fn socket_name(volume: &str, place: usize) -> String {
    name(&format!("socket-{place}"), volume)
}

fn name(part: &str, volume: &str) -> String {
    format!("kept-{part}-{volume}")
}

fn end_front_end(name: &str, volume: &VolumeConfig) {
    let seen = observe(&volume.medium()).ok().and_then(|seen| seen.front_end_pid);
    let Some(pid) = seen.and_then(|pid| Pid::from_raw(pid.cast_signed())) else { return };
    tracing::info!(volume = name, ?pid, "ending the front end of a keeper that is gone");
    let _may_have_ended = kill_process(pid, Signal::KILL);
}

//! What a service manager kept of volumes, for a keeper that comes after one that was killed.
//!
//! Promise: of all that was kept of a volume it is decided in one place, before anybody takes or
//! serves a part of it: it is taken up as it was kept, whatever the configuration says by now, as
//! if that had been changed under a keeper that lived; or it is refused, with a reason, and every
//! part of it stays with the manager, and its mount where it is; and it is let go of only if no
//! program can reach it any more. A volume that is given back is kept no longer.
//! Never: lets go of a connection that programs may have; has a volume shut out by what is kept of
//! it.

use crate::kept::Kept;
use crate::kept::held::Held;
use crate::kept::part_names::{part_name, socket_name};
use crate::kept::settings;
use crate::listeners::Listeners;
use holdfast_attach::observe::observe;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{VolumeConfig, Way};
use holdfast_machine::holders::signal;
use holdfast_machine::lock::{take_directory, take_home};
use holdfast_machine::mounts::served::{is_connected, mount_of};
use holdfast_machine::mounts::{Mount, leads_to, mounted_at};
use holdfast_machine::service_manager::ServiceManager;
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is kept beside sockets, in this order: whoever finds a connection finds how it was served.
const PARTS: [&str; 4] = [SETTINGS, FUSE, LOG, "kept-home"];
pub(crate) const SETTINGS: &str = "kept-settings";
pub(crate) const FUSE: &str = "kept-fuse";
const LOG: &str = "kept-log";

impl Kept {
    /// Has everything kept that outlives a front end of `whose`: "volume NAME" or "disk NAME".
    pub(crate) fn new(manager: &Arc<ServiceManager>, whose: &str, held: &Held) -> Kept {
        let mut kept = Kept { manager: Arc::clone(manager), names: Vec::new() };
        let fuse = held.fuse.as_ref().map(AsFd::as_fd);
        let [settings, log, home] =
            [&held.settings, &held.log, &held.home].map(|it| it.as_ref().map(AsFd::as_fd));
        for (part, descriptor) in PARTS.iter().zip([settings, fuse, log, home]) {
            descriptor.into_iter().for_each(|it| kept.keep(part_name(part, whose), it));
        }
        for (place, socket) in held.listeners.own_descriptors() {
            kept.keep(socket_name(whose, place), socket);
        }
        kept
    }

    /// Has the directory of its log kept in the place of the one that was there.
    pub(crate) fn keep_log_anew(&self, whose: &str, log: &OwnedFd) {
        self.replace(&part_name(LOG, whose), log.as_fd());
    }
}

/// What becomes of what was kept of a volume.
#[derive(Debug)]
pub(crate) enum Fate {
    /// It is served as this again.
    TakenUp(Box<VolumeConfig>),
    /// No program can reach it any more.
    LetGo,
    /// It cannot be taken up as things are, and programs may wait for it.
    Refused(Problem),
}

/// What was kept of one volume.
#[derive(Debug)]
struct Parts {
    /// How it was configured, and the file that says so.
    was: Option<VolumeConfig>,
    settings: Option<OwnedFd>,
    fuse: Option<OwnedFd>,
    log: Option<OwnedFd>,
    home: Option<OwnedFd>,
}

impl Parts {
    fn of(manager: &ServiceManager, name: &str) -> Parts {
        let [settings, fuse, log, home] = names_of(name).map(|name| manager.take(&name));
        let was = settings.as_ref().and_then(settings::read);
        Parts { was, settings, fuse, log, home }
    }

    /// The one place that decides. `now` is how the volume is configured.
    fn fate(&self, name: &str, now: Option<&VolumeConfig>) -> Fate {
        match (&self.fuse, self.was.as_ref(), now) {
            (Some(fuse), ..) if !is_connected(fuse) => Fate::LetGo,
            (Some(_), Some(was), _) => Fate::TakenUp(Box::new(was.clone())),
            (Some(fuse), None, Some(now)) => self.without_settings(name, fuse, now),
            (Some(_), None, None) => {
                Fate::Refused(left(name, "the configuration does not have it"))
            }
            // Clients of sockets wait for it.
            (None, Some(was), _) if was.mount.is_none() => Fate::TakenUp(Box::new(was.clone())),
            (None, None, Some(now))
                if now.mount.is_none() && self.log.is_some() == is_direct(now) =>
            {
                Fate::TakenUp(Box::new(now.clone()))
            }
            (None, ..) => Fate::LetGo,
        }
    }

    /// An earlier version kept the parts alone: they tell the most of it.
    fn without_settings(&self, name: &str, fuse: &OwnedFd, now: &VolumeConfig) -> Fate {
        let parts = [("home", &self.home, &now.home), ("log", &self.log, &now.log)];
        let other = parts
            .iter()
            .find(|(_, part, path)| part.as_ref().is_some_and(|part| !is_at(part, path)));
        if let Some((key, ..)) = other {
            return Fate::Refused(left(
                name,
                &format!("the configuration has another {key} for it"),
            ));
        }
        let looked_for = now.mount.as_deref().unwrap_or(Path::new("/"));
        let mount = mount_of(fuse, looked_for, name).map(|it| it.point).or(now.mount.clone());
        let way = if self.log.is_some() { Way::Direct } else { Way::Queue };
        Fate::TakenUp(Box::new(VolumeConfig { mount, way, ..now.clone() }))
    }

    /// Copies of what was kept, and anew what was not.
    fn held(&self, name: &str, volume: &VolumeConfig) -> Outcome<Held> {
        let what = || format!("taking volume {name} up");
        let copy = |it: &Option<OwnedFd>| {
            let copied = it.as_ref().map(OwnedFd::try_clone).transpose();
            let remedy = "see whether descriptors ran out";
            copied.map_err(|error| Problem::new(Exit::Failed, what(), error, remedy))
        };
        let covered = mounted_at(&volume.home).is_some_and(|mount: Mount| mount.is_ours());
        let home = match copy(&self.home)? {
            None if covered => return Err(left(name, "its home was not kept, and is covered")),
            None => take_home(&volume.home)?,
            Some(home) => home,
        };
        let log = match (volume.way, copy(&self.log)?) {
            (Way::Direct, None) => Some(take_directory("log", &volume.log)?),
            (Way::Direct, log) => log,
            (Way::Queue, _) => None,
        };
        Ok(Held {
            home: Some(home),
            log,
            settings: copy(&self.settings)?.or_else(|| settings::written(volume)),
            fuse: copy(&self.fuse)?.map(Arc::new),
            listeners: Listeners::default(),
            handover: None,
            kept: None,
            was_served: true,
        })
    }
}

/// What was kept of volumes and is not taken up yet, by name.
#[derive(Debug)]
pub(crate) struct Remains {
    manager: Arc<ServiceManager>,
    parts: Mutex<BTreeMap<String, Parts>>,
}

impl Remains {
    /// Everything that was kept of volumes.
    pub(crate) fn of(manager: &Arc<ServiceManager>) -> Remains {
        let given = manager.names();
        let of_volume = |given: &String| {
            let prefixes = names_of("");
            prefixes.iter().find_map(|prefix| given.strip_prefix(prefix)).map(str::to_owned)
        };
        let names: BTreeSet<String> = given.iter().filter_map(of_volume).collect();
        let parts = names.into_iter().map(|name| {
            let parts = Parts::of(manager, &name);
            (name, parts)
        });
        let parts = Mutex::new(parts.collect());
        Remains { manager: Arc::clone(manager), parts }
    }

    /// The volumes of which something is kept and not taken up.
    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// How a volume was configured of which something is kept and not taken up.
    pub(crate) fn was(&self, name: &str) -> Option<VolumeConfig> {
        self.lock().get(name)?.was.clone()
    }

    /// What becomes of what is kept of a volume, if something is; `now` is how it is configured.
    /// What is to be let go of is.
    pub(crate) fn fate(&self, name: &str, now: Option<&VolumeConfig>) -> Option<Fate> {
        let fate = self.lock().get(name)?.fate(name, now);
        if let Fate::LetGo = fate {
            self.taken(name);
            names_of(name).iter().for_each(|name| self.manager.forget(name));
        }
        Some(fate)
    }

    /// What a volume is taken up with. Until [`Self::taken`], everything stays as it was kept.
    pub(crate) fn held(&self, name: &str, volume: &VolumeConfig) -> Outcome<Held> {
        let gone = || left(name, "what was kept of it is gone");
        self.lock().get(name).ok_or_else(gone)?.held(name, volume)
    }

    /// Somebody has it all now, and sees to what is kept.
    pub(crate) fn taken(&self, name: &str) {
        self.lock().remove(name);
    }

    /// Whoever was about to take it up could not, and had the manager forget it.
    pub(crate) fn keep_again(&self, name: &str) {
        let all = self.lock();
        let Some(it) = all.get(name) else { return };
        let parts = [&it.settings, &it.fuse, &it.log, &it.home];
        for (name, part) in names_of(name).iter().zip(parts) {
            part.iter().for_each(|part| self.manager.keep(name, part.as_fd()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Parts>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn names_of(name: &str) -> [String; 4] {
    PARTS.map(|part| part_name(part, &format!("volume {name}")))
}

fn is_direct(volume: &VolumeConfig) -> bool {
    volume.way == Way::Direct
}

/// Whether a directory has this path. Nothing is asked of what is mounted there.
fn is_at(directory: &OwnedFd, path: &Path) -> bool {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    link.is_ok_and(|found| found == leads_to(path))
}

/// Why what is kept of a volume stays where it is.
fn left(name: &str, why: &str) -> Problem {
    let why = format!("{why}, and programs may wait for it: all that was kept of it stays kept");
    let remedy = format!(
        "put back what the configuration had for it, and `holdfast mount {name}`; or end those \
         programs, unmount it by hand, and `holdfast mount {name}`"
    );
    Problem::new(Exit::Usage, format!("taking volume {name} up"), why, remedy)
}

/// Ends the front end and the server that outlived the keeper of a volume that is kept. What they
/// acknowledged is in the region, and those that come next repeat what was under way.
pub(crate) fn end_who_outlived(name: &str, volume: &VolumeConfig) {
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

//! The front ends of disks: of those that the server has, and of those that are a front end's own.
//!
//! Promise: a disk that is to be more than a service has a front end for as long as the keeper
//! runs, or there is a reason why not; what was acknowledged is in the disk's region.
//! Never: changes a disk's region.

use super::copies::cut_off;
use super::kept::{Kept, take_back_mount};
use super::mounts::elsewhere::{FileSystem, KeptBy, PASSING};
use super::mounts::served::{mount_of, refuse_served};
use super::mounts::{Mount, disk_source, mounted_at, our_mount_at, unmount, users_text};
use super::spawn::{Held, OWN_BINARY};
use super::supervisor::{Snapshot, State, Supervised};
use super::{PROGRESS_EVERY, Progress, RETRY_EVERY, attach, upgrade};
use crate::config::{Config, DiskConfig, Way};
use crate::exit::Exit;
use crate::observe::is_mapped_by;
use crate::orders::{Orders, Server, Task};
use crate::problem::{Outcome, Problem};
use crate::service_manager::ServiceManager;
use holdfast_memory::Region;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a front end may take to end that ends with its keeper.
const ENDING: Duration = Duration::from_secs(10);

/// The front ends by the names of their disks.
#[derive(Debug)]
pub(crate) struct DiskFronts(BTreeMap<String, Outcome<DiskFront>>);

/// One of them, and where its disk is mounted.
#[derive(Debug)]
struct DiskFront {
    supervised: Supervised,
    file_system: Option<FileSystem>,
}

impl DiskFronts {
    /// None at all.
    pub(crate) const fn none() -> DiskFronts {
        DiskFronts(BTreeMap::new())
    }

    /// Starts one for each disk that wants one; those of the server's disks as its clients.
    pub(crate) fn start(
        config: &Config,
        term: Option<u64>,
        manager: &Arc<ServiceManager>,
        server_of: impl Fn(&str) -> Outcome<Server>,
    ) -> DiskFronts {
        let wanted = config.disks.iter().filter(|(_, disk)| disk.has_front_end());
        let start = |(name, disk): (&String, &DiskConfig)| {
            let server = match disk.way {
                Way::Queue => server_of(name).map(Some),
                Way::Direct => wait_until_let_go(name, disk, manager).map(|()| None),
            };
            let started =
                server.and_then(|server| start_one((config, term), name, disk, server, manager));
            started.as_ref().err().iter().for_each(|problem| tracing::error!("{problem}"));
            (name.clone(), started)
        };
        DiskFronts(wanted.map(start).collect())
    }

    /// Returns when those that have their disk themselves serve it, or do not: true if one does,
    /// the first reason if there are some and none of them does.
    pub(crate) fn wait_until_served(&self, config: &Config) -> Outcome<bool> {
        let alone = |name: &String| config.disks.get(name).is_some_and(|it| it.way == Way::Direct);
        let alone = self.0.iter().filter(|(name, _)| alone(name));
        let served: Vec<Outcome<()>> = alone.map(|(_, front)| serves(front)).collect();
        match served.iter().any(Result::is_ok) {
            true => Ok(true),
            false => served.into_iter().collect::<Outcome<()>>().map(|()| false),
        }
    }

    /// What is known of each, or why there is none.
    pub(crate) fn snapshots(&self) -> BTreeMap<String, Outcome<Snapshot>> {
        let snapshot = |front: &Outcome<DiskFront>| match front {
            Ok(front) => Ok(front.supervised.snapshot()),
            Err(problem) => Err(problem.clone()),
        };
        self.0.iter().map(|(name, front)| (name.clone(), snapshot(front))).collect()
    }

    /// Whether there is one of this disk, or a reason why not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Replaces the front end of a disk; returns when the new one serves.
    pub(crate) fn upgrade(&self, name: &str, binary: &Path, say: Progress<'_>) -> Outcome<String> {
        let whose = format!("disk {name}");
        let Some(front) = self.0.get(name) else {
            let what = format!("upgrading the front end of {whose}");
            let why = "it has none: neither mount nor nbd nor vhost-user nor ublk is set";
            return Err(Problem::new(Exit::Usage, what, why, "see `holdfast status`"));
        };
        let front = &front.as_ref().map_err(Clone::clone)?.supervised;
        front.upgrade(&whose, binary, say)?;
        let pid = front.snapshot().front_end_pid.unwrap_or_default();
        let binary = binary.display();
        Ok(format!("the front end of {name} is replaced: {binary} serves as process {pid}"))
    }

    /// Ends all of them, each when no program uses its mount any more, or when that no longer
    /// matters. The disks stay.
    pub(crate) fn stop(&self, is_forced: &dyn Fn() -> bool) {
        let fronts =
            || self.0.iter().filter_map(|(name, front)| Some((name, front.as_ref().ok()?)));
        let unmount = |name: &str, front: &DiskFront| {
            let mount = || front.file_system.as_ref().and_then(FileSystem::mount);
            unmount_disk(name, &mount, is_forced);
            front.supervised.unmounted();
        };
        fronts().for_each(|(name, front)| unmount(name, front));
        fronts().for_each(|(name, front)| front.wait_for_end(name, is_forced));
    }
}

impl DiskFront {
    /// Waits for the end of what is unmounted here, and for those who keep it elsewhere.
    fn wait_for_end(&self, name: &str, is_forced: &dyn Fn() -> bool) {
        let (begun, mut spoken) = (Instant::now(), false);
        loop {
            let seen = self.supervised.wait(PROGRESS_EVERY, Snapshot::is_over);
            if seen.is_over() {
                return;
            }
            let is_awaited = !seen.is_cut_off && begun.elapsed() >= PASSING;
            let Some(kept) = self.file_system.as_ref().filter(|_| is_awaited) else { continue };
            cut_off(&format!("disk {name}"), kept, &self.supervised);
            let Some(who) = kept.kept().and_then(KeptBy::in_use) else { continue };
            if is_forced() {
                self.supervised.cut_off(true);
            } else if !std::mem::replace(&mut spoken, true) {
                tracing::warn!("disk {name} is unmounted here: {who}; a second signal cuts it off");
            }
        }
    }
}

/// Waits until a front end serves, or is given up.
fn serves(front: &Outcome<DiskFront>) -> Outcome<()> {
    let front = &front.as_ref().map_err(Clone::clone)?.supervised;
    let starts = |seen: &Snapshot| matches!(seen.state, State::Starting | State::Restarting);
    loop {
        let seen = front.wait(PROGRESS_EVERY, |seen| !starts(seen));
        if !starts(&seen) {
            return seen.problem.map_or(Ok(()), Err);
        }
    }
}

/// Refuses a disk that somebody else has. Who ends with a keeper that is gone is given the time.
fn wait_until_let_go(name: &str, disk: &DiskConfig, manager: &ServiceManager) -> Outcome<()> {
    let (medium, begun) = (disk.medium(), Instant::now());
    let patience = if manager.keeps() { ENDING } else { Duration::ZERO };
    loop {
        let pid = Region::observe(&medium).ok().map(|seen| seen.server_pid());
        let Some(pid) = pid.filter(|pid| is_mapped_by(&medium, *pid)) else { return Ok(()) };
        if begun.elapsed() >= patience {
            let (what, why) =
                (format!("attaching disk {name}"), format!("process {pid} serves it"));
            let remedy = "nothing is lost; when its last user has gone it ends: then start the \
                          keeper again";
            return Err(Problem::new(Exit::InUse, what, why, remedy));
        }
        std::thread::sleep(RETRY_EVERY / 10);
    }
}

/// Takes a disk's mount away as soon as nobody uses it, or is to be waited for.
fn unmount_disk(name: &str, mount: &dyn Fn() -> Option<Mount>, is_forced: &dyn Fn() -> bool) {
    let mut spoken = false;
    while let Some(mount) = mount() {
        match unmount(&mount, is_forced()) {
            Err(problem) if problem.exit == Exit::InUse => {
                if !std::mem::replace(&mut spoken, true) {
                    tracing::warn!("disk {name}: {problem}; a second signal cuts them off");
                }
                std::thread::sleep(RETRY_EVERY);
            }
            ended => return ended.unwrap_or_else(|problem| tracing::error!("{problem}")),
        }
    }
}

fn start_one(
    (config, term): (&Config, Option<u64>),
    name: &str,
    disk: &DiskConfig,
    server: Option<Server>,
    manager: &Arc<ServiceManager>,
) -> Outcome<DiskFront> {
    let binary = upgrade::open_binary(Path::new(OWN_BINARY))?;
    let whose = format!("disk {name}");
    attach::check_driver(&whose, disk.ublk)?;
    let back = take_back_mount(manager, name, disk);
    let was_served = back.is_some();
    let (listeners, handover) = attach::listen(&whose, disk.sockets(), manager)?;
    let fuse = match (back, disk.mount.as_deref()) {
        (None, Some(point)) => Some(mount(&whose, &disk_source(name), point)?),
        (fuse, _) => fuse,
    };
    let fuse = fuse.map(Arc::new);
    let mounted = fuse.as_ref().zip(disk.mount.as_deref());
    let mounted = mounted.and_then(|(it, at)| mount_of(it, at, &disk_source(name)));
    let file_system = FileSystem::of(mounted, fuse.as_ref());
    let (home, log, kept) = (None, None, None);
    let held = Held { home, log, fuse, listeners, handover, kept, was_served };
    let held = Held { kept: Some(Kept::new(manager, &whose, &held)), ..held };
    let orders = Orders {
        name: name.to_owned(),
        volume: None,
        disk: Some(disk.clone()),
        power: config.keeper.power,
        task: Task::Serve,
        resume: false,
        ends_with_keeper: manager.keeps() && (disk.mount.is_some() || disk.way == Way::Direct),
        term,
        server,
        sockets: Vec::new(),
        handover: None,
        pulse_fd: None,
    };
    let supervised = Supervised::start(orders, held, binary, unmount_unserved)?;
    Ok(DiskFront { supervised, file_system })
}

/// Mounts a disk. One that an earlier keeper mounted is mounted anew if no program uses it.
fn mount(whose: &str, source: &str, point: &Path) -> Outcome<OwnedFd> {
    let what = format!("attaching {whose}");
    if let Some(left) = our_mount_at(point, source) {
        refuse_served(&what, &left, None)?;
        if unmount(&left, false).is_ok() {
            tracing::warn!("{} was left by another keeper, and is mounted anew", point.display());
        }
    }
    let Some(found) = mounted_at(point) else { return attach::mount(whose, source, point) };
    let (at, users) = (point.display(), users_text(point));
    let why = match found.source == source {
        true => format!("it is still mounted at {at}, for {users}"),
        false => format!("the mount point {at} is in use by {}", found.whose()),
    };
    let remedy = format!("stop who uses it, `umount {at}`, and start the keeper again");
    Err(Problem::new(Exit::InUse, what, why, remedy))
}

/// Takes the mount of a disk away that no front end ever served, and the block device.
fn unmount_unserved(orders: &Orders) {
    attach::unmount_unserved(orders);
    if let Some(point) = orders.disk.as_ref().and_then(|disk| disk.mount.as_deref()) {
        let mount = || our_mount_at(point, &disk_source(&orders.name));
        unmount_disk(&orders.name, &mount, &|| true);
    }
}

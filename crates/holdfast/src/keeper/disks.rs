//! The front ends of disks that the server has.
//!
//! Promise: a disk that is to be more than a service has a front end for as long as the keeper
//! runs, or there is a reason why not; what was acknowledged is the server's.
//! Never: touches a disk's region.

use super::kept::{Kept, take_back_mount};
use super::mounts::{disk_source, mounted_at, our_mount_at, unmount_at, users_text};
use super::spawn::{Held, OWN_BINARY};
use super::supervisor::{Snapshot, Supervised};
use super::{Progress, RETRY_EVERY, attach, upgrade};
use crate::config::{Config, DiskConfig};
use crate::exit::Exit;
use crate::orders::{Orders, Server, Task};
use crate::problem::{Outcome, Problem};
use crate::service_manager::ServiceManager;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The front ends by the names of their disks.
#[derive(Debug)]
pub(crate) struct DiskFronts(BTreeMap<String, Outcome<DiskFront>>);

/// One of them, and where its disk is mounted.
#[derive(Debug)]
struct DiskFront {
    supervised: Supervised,
    mount: Option<PathBuf>,
}

impl DiskFronts {
    /// None at all.
    pub(crate) const fn none() -> DiskFronts {
        DiskFronts(BTreeMap::new())
    }

    /// Starts one for each disk that wants one, as clients of the server.
    pub(crate) fn start(
        config: &Config,
        term: Option<u64>,
        manager: &Arc<ServiceManager>,
        server_of: impl Fn(&str) -> Outcome<Server>,
    ) -> DiskFronts {
        let wanted = config.disks.iter().filter(|(_, disk)| disk.has_front_end());
        let start = |(name, disk): (&String, &DiskConfig)| {
            let server = server_of(name);
            let started =
                server.and_then(|server| start_one((config, term), name, disk, server, manager));
            started.as_ref().err().iter().for_each(|problem| tracing::error!("{problem}"));
            (name.clone(), started)
        };
        DiskFronts(wanted.map(start).collect())
    }

    /// What is known of each, or why there is none.
    pub(crate) fn snapshots(&self) -> BTreeMap<String, Outcome<Snapshot>> {
        let snapshot = |front: &Outcome<DiskFront>| match front {
            Ok(front) => Ok(front.supervised.snapshot()),
            Err(problem) => Err(problem.clone()),
        };
        self.0.iter().map(|(name, front)| (name.clone(), snapshot(front))).collect()
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
    /// matters. The disks stay with the server.
    pub(crate) fn stop(&self, is_forced: &dyn Fn() -> bool) {
        let fronts =
            || self.0.iter().filter_map(|(name, front)| Some((name, front.as_ref().ok()?)));
        for (name, front) in fronts() {
            front.mount.iter().for_each(|point| unmount(name, point, is_forced));
            front.supervised.unmounted();
        }
        for (_, front) in fronts() {
            let supervised = &front.supervised;
            while !supervised.wait(Duration::from_secs(1), Snapshot::is_over).is_over() {}
        }
    }
}

/// Takes a disk's mount away as soon as nobody uses it, or is to be waited for.
fn unmount(name: &str, point: &Path, is_forced: &dyn Fn() -> bool) {
    let mut spoken = false;
    while our_mount_at(point, &disk_source(name)).is_some() {
        match unmount_at(point, is_forced()) {
            Err(problem) if problem.exit == Exit::InUse => {
                if !std::mem::replace(&mut spoken, true) {
                    tracing::warn!("{problem}; a second signal cuts them off");
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
    server: Server,
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
        ends_with_keeper: disk.mount.is_some() && manager.keeps(),
        term,
        server: Some(server),
        sockets: Vec::new(),
        handover: None,
    };
    let supervised = Supervised::start(orders, held, binary, unmount_unserved);
    Ok(DiskFront { supervised, mount: disk.mount.clone() })
}

/// Mounts a disk. One that an earlier keeper mounted is mounted anew if no program uses it.
fn mount(whose: &str, source: &str, point: &Path) -> Outcome<OwnedFd> {
    if our_mount_at(point, source).is_some() && unmount_at(point, false).is_ok() {
        tracing::warn!("{} was left by another keeper, and is mounted anew", point.display());
    }
    let Some(found) = mounted_at(point) else { return attach::mount(whose, source, point) };
    let (what, at, users) = (format!("attaching {whose}"), point.display(), users_text(point));
    let why = match found.source == source {
        true => format!("it is still mounted at {at}, for {users}"),
        false => format!("the mount point {at} is in use by {}", found.source),
    };
    let remedy = format!("stop who uses it, `umount {at}`, and start the keeper again");
    Err(Problem::new(Exit::InUse, what, why, remedy))
}

/// Takes the mount of a disk away that no front end ever served, and the block device.
fn unmount_unserved(orders: &Orders) {
    attach::unmount_unserved(orders);
    if let Some(point) = orders.disk.as_ref().and_then(|disk| disk.mount.as_deref()) {
        unmount(&orders.name, point, &|| true);
    }
}

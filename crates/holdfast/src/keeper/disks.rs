//! The front ends of disks that the server has.
//!
//! Promise: a disk that is to be more than a service has a front end for as long as the keeper
//! runs, or there is a reason why not; what was acknowledged is the server's.
//! Never: touches a disk's region.

use super::kept::Kept;
use super::spawn::{Held, OWN_BINARY};
use super::supervisor::{Snapshot, Supervised};
use super::{Progress, attach, upgrade};
use crate::config::{Config, DiskConfig};
use crate::exit::Exit;
use crate::orders::{Orders, Server, Task};
use crate::problem::{Outcome, Problem};
use crate::service_manager::ServiceManager;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The front ends by the names of their disks.
#[derive(Debug)]
pub(crate) struct DiskFronts(BTreeMap<String, Outcome<Supervised>>);

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
        let snapshot = |front: &Outcome<Supervised>| match front {
            Ok(front) => Ok(front.snapshot()),
            Err(problem) => Err(problem.clone()),
        };
        self.0.iter().map(|(name, front)| (name.clone(), snapshot(front))).collect()
    }

    /// Replaces the front end of a disk; returns when the new one serves.
    pub(crate) fn upgrade(&self, name: &str, binary: &Path, say: Progress<'_>) -> Outcome<String> {
        let whose = format!("disk {name}");
        let Some(front) = self.0.get(name) else {
            let what = format!("upgrading the front end of {whose}");
            let why = "it has none: neither nbd nor vhost-user nor ublk is set";
            return Err(Problem::new(Exit::Usage, what, why, "see `holdfast status`"));
        };
        let front = front.as_ref().map_err(Clone::clone)?;
        front.upgrade(&whose, binary, say)?;
        let pid = front.snapshot().front_end_pid.unwrap_or_default();
        let binary = binary.display();
        Ok(format!("the front end of {name} is replaced: {binary} serves as process {pid}"))
    }

    /// Ends all of them. The disks stay with the server.
    pub(crate) fn stop(&self) {
        let fronts = || self.0.values().flatten();
        fronts().for_each(Supervised::unmounted);
        for front in fronts() {
            while !front.wait(Duration::from_secs(1), Snapshot::is_over).is_over() {}
        }
    }
}

fn start_one(
    (config, term): (&Config, Option<u64>),
    name: &str,
    disk: &DiskConfig,
    server: Server,
    manager: &Arc<ServiceManager>,
) -> Outcome<Supervised> {
    let binary = upgrade::open_binary(Path::new(OWN_BINARY))?;
    let whose = format!("disk {name}");
    attach::check_driver(&whose, disk.ublk)?;
    let (listeners, handover) = attach::listen(&whose, disk.sockets(), manager)?;
    let (home, log, fuse, kept) = (None, None, None, None);
    let held = Held { home, log, fuse, listeners, handover, kept, was_served: false };
    let held = Held { kept: Some(Kept::new(manager, &whose, &held)), ..held };
    let orders = Orders {
        name: name.to_owned(),
        volume: None,
        disk: Some(disk.clone()),
        power: config.keeper.power,
        task: Task::Serve,
        resume: false,
        term,
        server: Some(server),
        sockets: Vec::new(),
        handover: None,
    };
    Ok(Supervised::start(orders, held, binary, attach::unmount_unserved))
}

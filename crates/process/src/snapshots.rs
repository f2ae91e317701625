//! Snapshots of machines, as the server takes them up.
//!
//! Promise: snapshots are taken up as they were left. A disk that is half restored is finished, or
//! not served.
//! Never: makes a store where one was expected.

use crate::disk::{self, Use};
use crate::disks::{DiskWords, Disks};
use holdfast_blocks::Vdisk;
use holdfast_client::protocol::{DISK_PREFIX, SNAPSHOT_PREFIX};
use holdfast_config::SnapshotConfig;
use holdfast_config::claims::Verdict;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_keeper::orders::{ServerOrders, ServerReady};
use holdfast_server::{Departure, RespondError, Responder, ServiceKind, ServiceSpec};
use holdfast_snapshot::{RespondError as SnapshotError, Snapshots, Source};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A disk that is the store of snapshots.
pub fn of(name: &str) -> Use<'_> {
    Use { noun: "snapshot", name }
}

/// Takes up the snapshots that can be. Disks that none of them can make whole are taken out.
pub(super) fn take_up(
    orders: &ServerOrders,
    disks: &mut Disks,
    ready: &mut ServerReady,
) -> Vec<ServiceSpec> {
    let mut services = Vec::new();
    for (name, config) in &orders.snapshots {
        let service = format!("{SNAPSHOT_PREFIX}{name}");
        match take_up_one(name, config, orders, disks) {
            Ok((vdisk, verdict, snapshots)) => {
                ready.verdicts.push((service.clone(), verdict));
                leave_out(&snapshots.torn_disks(), name, disks, ready);
                services.push(spec(service, config, vdisk, snapshots));
            }
            Err(problem) => ready.unserved.push((service, problem)),
        }
    }
    services
}

fn take_up_one(
    name: &str,
    config: &SnapshotConfig,
    orders: &ServerOrders,
    disks: &Disks,
) -> Outcome<(Arc<Vdisk>, Verdict, Snapshots)> {
    let (vdisk, verdict) = disk::take_up_one(of(name), &config.store(), orders.power)?;
    let its = disks.iter().filter(|(name, _)| config.disks.contains(name));
    let its = its.map(|(name, (_, vdisk))| (name.clone(), Arc::clone(vdisk) as Arc<dyn Source>));
    let its: BTreeMap<_, _> = its.collect();
    if let Some(missing) = config.disks.iter().find(|disk| !its.contains_key(*disk)) {
        let (what, why) = (opening(name), format!("disk {missing} is not served"));
        return Err(Problem::new(
            Exit::Failed,
            what,
            why,
            "see that disk; then upgrade the server",
        ));
    }
    let vdisk = Arc::new(vdisk);
    let opened = Snapshots::open(vdisk.clone(), its);
    let snapshots = opened.map_err(|error| {
        let remedy = format!("`holdfast snapshot remove {name}`, and make it anew");
        Problem::new(Exit::Damaged, opening(name), error, remedy)
    })?;
    Ok((vdisk, verdict, snapshots))
}

fn opening(name: &str) -> String {
    format!("taking up the snapshots of {name}")
}

/// Disks that are half one thing and half another are not served.
fn leave_out(torn: &[String], name: &str, disks: &mut Disks, ready: &mut ServerReady) {
    for torn in torn {
        let service = format!("{DISK_PREFIX}{torn}");
        disks.remove(torn);
        ready.verdicts.retain(|(of, _)| *of != service);
        let why = format!("it is half restored, and its snapshot in {name} is damaged");
        let remedy = format!(
            "remove the snapshot; without a keeper, `holdfast disk remove {torn}`; make it anew"
        );
        let what = format!("taking up disk {torn}");
        ready.unserved.push((service, Problem::new(Exit::Damaged, what, why, remedy)));
    }
}

fn spec(
    service: String,
    config: &SnapshotConfig,
    vdisk: Arc<Vdisk>,
    snapshots: Snapshots,
) -> ServiceSpec {
    ServiceSpec {
        service,
        kind: ServiceKind::Responder(Arc::new(Served(snapshots))),
        words: Arc::new(DiskWords(vdisk)),
        allow_uids: config.allow_uids.clone(),
        clients_max: config.clients_max,
    }
}

/// Snapshots as the server asks them. Every request may be repeated, so numbers do not matter.
struct Served(Snapshots);

impl Responder for Served {
    fn respond(
        &self,
        client: u64,
        _sequence: u64,
        _oldest: u64,
        request: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), RespondError> {
        self.0.respond(client, request, answer).map_err(|error| match error {
            SnapshotError::Malformed => RespondError::Malformed,
            SnapshotError::Failed(error) => RespondError::Failed(error),
            other => RespondError::Failed(io::Error::other(other)),
        })
    }

    fn departed(&self, client: u64, _departure: Departure) {
        self.0.leave(client);
    }
}

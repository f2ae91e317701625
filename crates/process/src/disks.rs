//! The disks that the server has.
//!
//! Promise: a disk that cannot be taken up keeps no other from being served; the reason is told.
//! Never: makes a disk.

use crate::disk;
use holdfast_blocks::Vdisk;
use holdfast_client::protocol::DISK_PREFIX;
use holdfast_keeper::orders::{DiskOrders, ServerOrders, ServerReady};
use holdfast_server::{ServiceKind, ServiceSpec, ServiceWords};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Disks that were taken up, by name.
pub(crate) type Disks = BTreeMap<String, (DiskOrders, Arc<Vdisk>)>;

/// Takes up the disks that can be.
pub(crate) fn take_up_disks(orders: &ServerOrders, ready: &mut ServerReady) -> Disks {
    let mut disks = Disks::new();
    for one in &orders.disks {
        let service = format!("{DISK_PREFIX}{}", one.name);
        match disk::take_up(&one.name, &one.disk, orders.power) {
            Ok((vdisk, verdict)) => {
                ready.verdicts.push((service, verdict));
                disks.insert(one.name.clone(), (one.clone(), Arc::new(vdisk)));
            }
            Err(problem) => ready.unserved.push((service, problem)),
        }
    }
    disks
}

/// A disk as the server serves it: all its state is in its region.
pub(crate) fn disk_spec(orders: &DiskOrders, vdisk: Arc<Vdisk>) -> ServiceSpec {
    ServiceSpec {
        service: format!("{DISK_PREFIX}{}", orders.name),
        kind: ServiceKind::Disk(vdisk.clone()),
        words: Arc::new(DiskWords(vdisk)),
        allow_uids: orders.disk.uids(),
        clients_max: orders.disk.clients_max(),
    }
}

/// The words of a disk's region.
pub(crate) struct DiskWords(pub(crate) Arc<Vdisk>);

impl ServiceWords for DiskWords {
    fn word(&self, index: usize) -> &AtomicU64 {
        self.0.counter(index)
    }
}

//! Virtual machines that go on where they stopped, instead of booting.
//!
//! Promise: a snapshot is taken up at most once, and only by a QEMU with the same arguments; until
//! the guest runs again, nothing of it is lost. Without one that can be taken up the guest boots.
//! Never: looks into a guest, its memory or its disks; QEMU has them.
//!
//! The guest's memory is a file that QEMU maps shared, so that it stays where it is when QEMU ends;
//! the state that is saved is what QEMU knows beside it.

mod qmp;
mod service;
mod snapshot;

pub(crate) use qmp::{Qmp, QmpError};
pub(crate) use service::{ServiceError, SnapshotService, part};
pub(crate) use snapshot::{Snapshot, Taken};

//! Mount points: what is mounted where, mounting and unmounting.
//!
//! Promise: answers from the kernel's table alone, so a mount whose front end hangs cannot hang the
//! answer.
//! Never: opens, stats or lists anything below a mount point.

pub mod apart;
pub mod elsewhere;
pub mod point;
pub mod served;
mod table;
mod unmount;
pub mod views;

pub use table::{
    Mount, all_mounts, disk_source, leads_to, mounted_at, our_mount_at, our_mount_of, users_text,
};
pub(crate) use table::{mount_above, mounts_of};
pub use unmount::{covered_by, covered_text, unmount, unmount_idle};

use holdfast_config::problem::Outcome;
use point::MountPoint;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Mounts at a place that is free; `whose` it is, for people.
pub fn mount(whose: &str, source: &str, point: &Path) -> Outcome<OwnedFd> {
    MountPoint::find(&format!("attaching {whose}"), point, None)?.mount(whose, source)
}

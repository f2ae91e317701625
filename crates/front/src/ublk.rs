//! A disk as a block device of this machine, `/dev/ublkbN`: ublk, for whatever uses block devices.
//!
//! Promise: the device outlives the process that serves it. What a killed one took and did not
//! answer is done again by the next one, and no program sees an error, only a pause. The device
//! says that it has a write cache, and a flush is answered when the disk was flushed.
//! Never: keeps data between two requests, or takes up a device that another disk has made.
//!
//! Spoken: several queues; FLUSH, FUA, DISCARD, WRITE_ZEROES; USER_RECOVERY with REISSUE, and
//! USER_COPY. Not spoken: zones, zero copy, devices of other users.
//!
//! Source: Documentation/block/ublk.rst and include/uapi/linux/ublk_cmd.h of Linux 6.12. It asks
//! for Linux 6.5 or later, with its driver `ublk_drv`, and for CAP_SYS_ADMIN.
//! Without the feature `ublk` there is nothing of it but the answer that there is nothing.

#[cfg(not(feature = "ublk"))]
mod absent;
#[cfg(feature = "ublk")]
mod control;
#[cfg(feature = "ublk")]
mod device;
mod error;
#[cfg(feature = "ublk")]
pub mod parse;
#[cfg(feature = "ublk")]
mod queue;
#[cfg(feature = "ublk")]
#[allow(unsafe_code)]
mod raw;
#[cfg(feature = "ublk")]
mod serve;
#[cfg(feature = "ublk")]
mod wire;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

#[cfg(not(feature = "ublk"))]
pub use absent::{Device, check_driver, is_in_use, remove};
#[cfg(feature = "ublk")]
pub use control::{check_driver, is_in_use};
#[cfg(feature = "ublk")]
pub use device::{Device, remove};
pub use error::DeviceError;

/// The device of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UblkConfig {
    /// N in `/dev/ublkbN`, below 2^20.
    pub id: u32,
    /// Whose disk it is. A device that was made under another name is not taken up.
    pub name: String,
}

/// Until when a device is served.
#[derive(Clone, Copy, Debug)]
pub struct Until<'a> {
    /// It is not served any longer.
    pub stop: &'a AtomicBool,
    /// Looked at once `stop` is set: another process will serve the device, so it stays.
    pub is_left: &'a AtomicBool,
}

/// Where programs find the device with this number.
pub fn block_path(id: u32) -> PathBuf {
    format!("/dev/ublkb{id}").into()
}

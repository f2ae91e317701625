//! Why a disk is no block device.
//!
//! Promise: says what was asked of the kernel, and what there is to do about its answer.
//! Never: stands for an error of the disk's; those are answers to requests.

use std::io;

/// Why the device of a disk is not served, or not removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// This program was built without such devices: build it with the feature `ublk`.
    #[error("this program was built without the feature ublk")]
    NotBuilt,
    /// The kernel has no driver, or not loaded it: `modprobe ublk_drv`.
    #[error("no /dev/ublk-control: the driver ublk_drv is not loaded")]
    NoDriver,
    /// The driver is older than Linux 6.5.
    #[error("ublk_drv is older than Linux 6.5")]
    OldDriver,
    /// The device is another disk's or another program's: choose another number, or end that one.
    #[error("the device with this number is not this disk's")]
    Taken,
    /// Another process serves it: end that one.
    #[error("process {pid} serves the device")]
    Served {
        /// Which one.
        pid: i32,
    },
    /// The device is there with another size than the disk's: end its use, and remove it.
    #[error("the device has another size than its disk")]
    Resized,
    /// Somebody removed the device while it was served.
    #[error("the device was removed")]
    Removed,
    /// The kernel refused a command.
    #[error("ublk: {doing}: {error}")]
    Kernel {
        /// The command.
        doing: &'static str,
        /// What the kernel says.
        #[source]
        error: io::Error,
    },
}

#[cfg(feature = "ublk")]
impl DeviceError {
    /// For `map_err`: what was being done.
    pub(crate) fn during(doing: &'static str) -> impl Fn(io::Error) -> DeviceError {
        move |error| DeviceError::Kernel { doing, error }
    }
}

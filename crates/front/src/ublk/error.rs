//! Why a disk is no block device.
//!
//! Promise: says what was asked of the kernel, and what there is to do about its answer.
//! Never: stands for an error of the disk's; those are answers to requests.

use std::fmt;
use std::io;

/// Why the device of a disk is not served, or not removed.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeviceError {
    /// This program was built without such devices: build it with the feature `ublk`.
    NotBuilt,
    /// The kernel has no driver, or not loaded it: `modprobe ublk_drv`.
    NoDriver,
    /// The driver is older than Linux 6.5.
    OldDriver,
    /// The device is another disk's or another program's: choose another number, or end that one.
    Taken,
    /// Another process serves it: end that one.
    Served {
        /// Which one.
        pid: i32,
    },
    /// The device is there with another size than the disk's: end its use, and remove it.
    Resized,
    /// Somebody removed the device while it was served.
    Removed,
    /// The kernel refused a command.
    Kernel {
        /// The command.
        doing: &'static str,
        /// What the kernel says.
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

impl fmt::Display for DeviceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt => write!(out, "this program was built without the feature ublk"),
            Self::NoDriver => {
                write!(out, "no /dev/ublk-control: the driver ublk_drv is not loaded")
            }
            Self::OldDriver => write!(out, "ublk_drv is older than Linux 6.5"),
            Self::Taken => write!(out, "the device with this number is not this disk's"),
            Self::Served { pid } => write!(out, "process {pid} serves the device"),
            Self::Resized => write!(out, "the device has another size than its disk"),
            Self::Removed => write!(out, "the device was removed"),
            Self::Kernel { doing, error } => write!(out, "ublk: {doing}: {error}"),
        }
    }
}

impl std::error::Error for DeviceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Kernel { error, .. } => Some(error),
            _ => None,
        }
    }
}

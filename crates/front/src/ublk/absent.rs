//! What there is without the feature `ublk`.
//!
//! Promise: the names of what there is with it, each of which answers that there is none.
//! Never: asks the kernel for anything.

use holdfast_io::Blocks;

use super::{DeviceError, UblkConfig, Until};

/// A device that nobody can have.
#[derive(Debug)]
pub enum Device {}

impl Device {
    /// Fails.
    pub fn prepare(_: UblkConfig, _: u64) -> Result<Device, DeviceError> {
        Err(DeviceError::NotBuilt)
    }

    /// Is never called.
    pub fn serve(self, _: &dyn Blocks, _: Until<'_>, _: impl FnOnce()) -> Result<(), DeviceError> {
        match self {}
    }
}

/// Fails.
pub fn check_driver() -> Result<(), DeviceError> {
    Err(DeviceError::NotBuilt)
}

/// Nothing is.
pub fn is_in_use(_: u32) -> bool {
    false
}

/// There is nothing to remove.
pub fn remove(_: &UblkConfig) -> Result<(), DeviceError> {
    Ok(())
}

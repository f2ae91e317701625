//! Devices, as the kernel's driver keeps them.
//!
//! Promise: each command says what it was about when it fails.
//! Never: serves a request.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::block_path;
use super::error::DeviceError;
use super::raw::ControlRing;
use super::wire::{
    CONTROL_PATH, FEATURES, INFO_BYTES, Info, PARAMETERS_BYTES, command, parameters, sectors_of,
};
use crate::sectors::SECTOR_BYTES;

/// The device with one number.
pub(crate) struct Control {
    ring: ControlRing,
    id: u32,
}

/// Fails if this machine's kernel cannot have such devices.
pub fn check_driver() -> Result<(), DeviceError> {
    match Path::new(CONTROL_PATH).exists() {
        true => Ok(()),
        false => Err(DeviceError::NoDriver),
    }
}

/// Whether something on this machine keeps the device for itself, as a mounted file system does.
pub fn is_in_use(id: u32) -> bool {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::open(block_path(id), flags, Mode::empty()).err() == Some(Errno::BUSY)
}

impl Control {
    pub(crate) fn of(id: u32) -> Result<Control, DeviceError> {
        let opened = File::options().read(true).write(true).open(CONTROL_PATH);
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DeviceError::NoDriver,
            _ => DeviceError::Kernel { doing: "opening /dev/ublk-control", error },
        })?;
        let ring = ControlRing::new(file).map_err(DeviceError::during("making an io_uring"))?;
        Ok(Control { ring, id })
    }

    /// What the device is, if there is one.
    pub(crate) fn info(&mut self) -> Result<Option<Info>, DeviceError> {
        let mut bytes = [0; INFO_BYTES];
        match self.ring.command(command::GET_INFO, self.id, &mut bytes, 0) {
            Ok(()) => Ok(Some(Info::from_bytes(&bytes))),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(DeviceError::during("looking at the device")(error)),
        }
    }

    /// Adds the device; `wanted` has its queues and its mark.
    pub(crate) fn add(&mut self, wanted: Info, size_bytes: u64) -> Result<Info, DeviceError> {
        let mut bytes = wanted.to_bytes();
        let added = self.ring.command(command::ADD, self.id, &mut bytes, 0);
        added.map_err(|error| match error.raw_os_error() {
            Some(libc::EEXIST) => DeviceError::Taken,
            _ => DeviceError::during("adding the device")(error),
        })?;
        let info = Info::from_bytes(&bytes);
        if info.features & FEATURES != FEATURES {
            self.delete()?;
            return Err(DeviceError::OldDriver);
        }
        let mut parameters = parameters(size_bytes);
        let set = self.ring.command(command::SET_PARAMETERS, self.id, &mut parameters, 0);
        set.map_err(DeviceError::during("describing the device"))?;
        Ok(info)
    }

    /// The size that programs see.
    pub(crate) fn size_bytes(&mut self) -> Result<u64, DeviceError> {
        // The kernel is told how much there is room for by the structure itself.
        let mut bytes = parameters(0);
        let _: &[u8; PARAMETERS_BYTES] = &bytes;
        let got = self.ring.command(command::GET_PARAMETERS, self.id, &mut bytes, 0);
        got.map_err(DeviceError::during("asking for the device's size"))?;
        Ok(sectors_of(&bytes) * SECTOR_BYTES)
    }

    /// Shows the device to programs. Returns when all queues are served.
    pub(crate) fn start(&mut self) -> Result<(), DeviceError> {
        self.by_this_process(command::START, "starting the device")
    }

    /// Begins to take up a device whose server died. False as long as it is not wholly gone.
    pub(crate) fn start_recovery(&mut self) -> Result<bool, DeviceError> {
        match self.ring.command(command::START_RECOVERY, self.id, &mut [], 0) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(false),
            Err(error) => Err(DeviceError::during("taking the device up")(error)),
        }
    }

    /// Sends what was not answered again. Returns when all queues are served.
    pub(crate) fn end_recovery(&mut self) -> Result<(), DeviceError> {
        self.by_this_process(command::END_RECOVERY, "going on with the device")
    }

    /// Takes the device away from programs. If it is served, its queues end.
    pub(crate) fn stop(&mut self) -> Result<(), DeviceError> {
        let stopped = self.ring.command(command::STOP, self.id, &mut [], 0);
        stopped.map_err(DeviceError::during("stopping the device"))
    }

    /// Ends the device. Returns when nobody has its server's file any more.
    pub(crate) fn delete(&mut self) -> Result<(), DeviceError> {
        let deleted = self.ring.command(command::DELETE, self.id, &mut [], 0);
        deleted.map_err(DeviceError::during("removing the device"))
    }

    /// Ends the device once no program has it any more, without waiting for that.
    pub(crate) fn delete_later(&mut self) -> Result<(), DeviceError> {
        match self.ring.command(command::DELETE_LATER, self.id, &mut [], 0) {
            Ok(()) => Ok(()),
            // The driver of a kernel before Linux 6.9 does not know it.
            Err(_) => self.delete(),
        }
    }

    fn by_this_process(&mut self, code: u32, doing: &'static str) -> Result<(), DeviceError> {
        let pid = u64::from(std::process::id());
        self.ring.command(code, self.id, &mut [], pid).map_err(DeviceError::during(doing))
    }
}

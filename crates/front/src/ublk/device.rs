//! The device of a disk, from its first server to its last.
//!
//! Promise: a device of this disk that a dead process left is taken up, with what it was asked for;
//! another's is not touched.
//! Never: knows the meaning of a request.

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::{self, Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use holdfast_io::Blocks;
use holdfast_io::checksum::crc32c;

use super::control::Control;
use super::error::DeviceError;
use super::queue::Worker;
use super::wire::{DEAD, FEATURES, Info, server_path};
use super::{UblkConfig, Until};
use crate::complaints::Complaints;
use crate::sectors::SECTOR_BYTES;
use crate::wake::WakeUp;

/// Most queues of a device; each has a thread (two while it waits for slow flushes) and a buffer of
/// 1 MiB.
const QUEUES_MAX: usize = 4;

/// Requests of a queue at a time.
const DEPTH: u16 = 128;

/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(20);

/// How often it is looked whether the process before is gone.
const LOOK_FOR_THE_DEAD: Duration = Duration::from_millis(1);

/// How long the kernel may take to be done with a process that died.
const PATIENCE: Duration = Duration::from_secs(10);

/// A device that this process is to serve.
pub struct Device {
    control: Control,
    config: UblkConfig,
    info: Info,
    is_taken_up: bool,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Device").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Device {
    /// Adds the device, or takes up the one that an earlier process has served for the same disk.
    /// Programs see nothing of it before [`Device::serve`].
    pub fn prepare(config: UblkConfig, size_bytes: u64) -> Result<Device, DeviceError> {
        let mut control = Control::of(config.id)?;
        let left = existing(&mut control, &config)?;
        let is_taken_up = left.is_some_and(|info| info.state != DEAD);
        let info = match left {
            Some(info) if is_taken_up => {
                take_up(&mut control, info, size_bytes)?;
                info
            }
            left => {
                // Nobody has ever seen it, and its size may be another's.
                left.map_or(Ok(()), |_| control.delete())?;
                add(&mut control, &config, size_bytes)?
            }
        };
        Ok(Device { control, config, info, is_taken_up })
    }

    /// Serves `blocks` to the programs that use the device. `started` is called once they can. When
    /// it is to stop, the device is taken away from them and removed, or left to the next process.
    ///
    /// A panic in the disk, and a queue that cannot be served, end the whole process.
    pub fn serve(
        mut self,
        blocks: &dyn Blocks,
        until: Until<'_>,
        started: impl FnOnce(),
    ) -> Result<(), DeviceError> {
        // Memory reclaim must not wait for the process that it may be writing through. Without the
        // right to say so, the front end works like any other process.
        let _ = rustix::process::configure_io_flusher_behavior(true);
        let file = Arc::new(self.open()?);
        let stop = Arc::new(WakeUp::new().map_err(DeviceError::during("making an eventfd"))?);
        thread::scope(|scope| {
            let queues = self.start_queues(scope, &file, blocks, &stop);
            let served = queues.and_then(|queues| self.attend(&queues, until, started));
            // Nothing more is asked of queues that are still there, or another process is.
            stop.wake();
            served
        })?;
        drop(file);
        match until.is_left.load(Ordering::Relaxed) {
            true => Ok(()),
            false => self.control.delete_later(),
        }
    }

    /// Shows the device to programs until it is to stop, and then takes it away from them or not.
    fn attend(
        &mut self,
        queues: &[ScopedJoinHandle<'_, ()>],
        until: Until<'_>,
        started: impl FnOnce(),
    ) -> Result<(), DeviceError> {
        match self.is_taken_up {
            true => self.control.end_recovery()?,
            false => self.control.start()?,
        }
        started();
        while !until.stop.load(Ordering::Relaxed) {
            if queues.iter().all(ScopedJoinHandle::is_finished) {
                return Err(DeviceError::Removed);
            }
            thread::sleep(LOOK);
        }
        match until.is_left.load(Ordering::Relaxed) {
            true => Ok(()),
            // What programs have still to write is asked for and answered before this returns.
            false => self.control.stop(),
        }
    }

    /// Another process may have the file until the kernel has ended it.
    fn open(&self) -> Result<File, DeviceError> {
        let open = || File::options().read(true).write(true).open(server_path(self.config.id));
        let opened = patiently(|| match open() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(None),
            opened => opened.map(Some),
        });
        let opened = opened.and_then(|file| file.ok_or(io::Error::from_raw_os_error(libc::EBUSY)));
        opened.map_err(DeviceError::during("opening the device's server file"))
    }

    fn start_queues<'scope, 'env>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        file: &Arc<File>,
        blocks: &'env dyn Blocks,
        stop: &Arc<WakeUp>,
    ) -> Result<Vec<ScopedJoinHandle<'scope, ()>>, DeviceError> {
        let device = super::block_path(self.config.id).display().to_string();
        let complaints = Arc::new(Mutex::new(Complaints::alone("ublk", device)));
        let start = |index| {
            let (file, stop, complaints) = (file.clone(), stop.clone(), complaints.clone());
            let depth = self.info.depth;
            let worker = Worker { index, depth, file, blocks, stop, complaints, scope };
            Builder::new().name("ublk".into()).spawn_scoped(scope, || worker.work())
        };
        let started: io::Result<_> = (0..self.info.queues).map(start).collect();
        started.map_err(DeviceError::during("starting threads"))
    }
}

/// Removes the device that was left of a disk, if there is one. Who uses it is cut off.
pub fn remove(config: &UblkConfig) -> Result<(), DeviceError> {
    match remove_existing(config) {
        Err(DeviceError::NoDriver | DeviceError::Taken) => Ok(()),
        removed => removed,
    }
}

fn remove_existing(config: &UblkConfig) -> Result<(), DeviceError> {
    let mut control = Control::of(config.id)?;
    if existing(&mut control, config)?.is_none() {
        return Ok(());
    }
    control.stop()?;
    control.delete_later()
}

/// The device, if there is one and it is this disk's.
fn existing(control: &mut Control, config: &UblkConfig) -> Result<Option<Info>, DeviceError> {
    let info = control.info()?;
    match info {
        Some(info) if info.mark != mark_of(&config.name) => Err(DeviceError::Taken),
        info => Ok(info),
    }
}

fn take_up(control: &mut Control, info: Info, size_bytes: u64) -> Result<(), DeviceError> {
    if control.size_bytes()? != size_bytes - size_bytes % SECTOR_BYTES {
        return Err(DeviceError::Resized);
    }
    let is_begun = patiently(|| control.start_recovery().map(|is_begun| is_begun.then_some(())))?;
    is_begun.ok_or(DeviceError::Served { pid: info.server_pid })
}

/// Tries until there is something, or for as long as the kernel may take to end a process.
fn patiently<T, E>(mut attempt: impl FnMut() -> Result<Option<T>, E>) -> Result<Option<T>, E> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match attempt()? {
            None if Instant::now() < give_up => thread::sleep(LOOK_FOR_THE_DEAD),
            tried => return Ok(tried),
        }
    }
}

/// A program may still have the device of before open, though it is no device any more.
fn add(control: &mut Control, config: &UblkConfig, size_bytes: u64) -> Result<Info, DeviceError> {
    let added = patiently(|| match control.add(wanted(config), size_bytes) {
        Err(DeviceError::Taken) => Ok(None),
        added => added.map(Some),
    })?;
    added.ok_or(DeviceError::Taken)
}

fn wanted(config: &UblkConfig) -> Info {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Info {
        queues: processors.min(QUEUES_MAX) as u16,
        depth: DEPTH,
        state: DEAD,
        id: config.id,
        server_pid: 0,
        features: FEATURES,
        mark: mark_of(&config.name),
    }
}

/// How a device says whose it is: four letters, and a check of the name.
fn mark_of(name: &str) -> u64 {
    u64::from(u32::from_be_bytes(*b"hold")) << 32 | u64::from(crc32c(0, name.as_bytes()))
}

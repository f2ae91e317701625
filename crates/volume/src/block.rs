//! A block volume: a volume whose home is one file or one block device.
//!
//! It is a directory volume over a directory with one name in it (see [`OneFile`]), so records,
//! overlay, replay and cleaner are the same. What is here is what a disk's users ask that a file's
//! do not: ranges instead of files, and a size that no write changes.
//!
//! Promise: a write of up to [`Blocks::atomic_bytes_max`] is one frame. Nothing is done for a range
//! that is not wholly on the disk. A read of the home keeps no writer waiting.
//! Never: makes or removes a name.

mod error;
mod tree;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use holdfast_io::{Blocks, BlocksError, Extent, OneFile, OpenFile};
use holdfast_log::{Lsn, Marks};

use crate::changes::read::read_home;
use crate::changes::write::SIZE_BYTES_MAX;
use crate::clean::Cleaned;
use crate::clean::error::CleanError;
use crate::error::{Stop, VolumeError};
use crate::frame::Spot;
use crate::node::{Body, Node};
use crate::overlay::recent::Recent;
use crate::overlay::sparse::extent_in;
use crate::record::{AtHome, HEAD_BYTES};
use crate::volume::{Class, DirectoryVolume};
use holdfast_io::tree::{Allocate, Errno, ROOT, SetAttributes, Tree};

pub use error::ResizeError;

/// The longest write that is one frame, if the log takes frames as long.
const ATOMIC_BYTES_MAX: u64 = 1 << 20;
/// Longer writes are cut at multiples of this, as long as the log takes frames as long.
const BLOCK_BYTES: u64 = 4096;
/// Records in the frame of a write, at the most: its zeros, its bytes.
const RECORDS_MAX: usize = 2;
const RECORDS_BYTES_MAX: u64 = (RECORDS_MAX * (HEAD_BYTES + OneFile::NAME.len())) as u64;

/// A file or block device kept by a log.
///
/// As [`Blocks`]: what is acknowledged is stable. In class Memory there is nothing left for
/// [`Blocks::flush`] to do; in class Disk it returns when the log's device has all of it. Whatever
/// fails, home and log together are what some first part of the acknowledged changes left.
pub struct BlockVolume {
    volume: DirectoryVolume,
    node: Arc<Node>,
    file: Arc<dyn OpenFile>,
    atomic_bytes_max: usize,
    is_device: bool,
}

impl BlockVolume {
    /// Takes a volume that was opened on a [`OneFile`], for a disk.
    ///
    /// # Errors
    /// [`VolumeError::Home`]: the home has no such file, or cannot be read.
    pub fn new(volume: DirectoryVolume) -> Result<BlockVolume, VolumeError> {
        let node = the_node(&volume).map_err(VolumeError::Home)?;
        let file = volume.home_file(&node).and_then(|file| file.ok_or(Errno::NOENT));
        let file = file.map_err(VolumeError::Home)?;
        volume.know_allocated(&node).map_err(VolumeError::Home)?;
        let is_device = {
            let mut body = node.body_mut();
            body.recent = Recent::in_sectors();
            body.attributes.rdev != 0
        };
        let atomic_bytes_max = atomic_bytes_max(volume.log.payload_bytes_max());
        Ok(BlockVolume { volume, node, file, atomic_bytes_max, is_device })
    }

    /// What an acknowledgement of this volume means.
    pub fn class(&self) -> Class {
        self.volume.class()
    }

    /// Tells status which process serves the volume from now on.
    pub fn served_by(&self, pid: u32) {
        self.volume.served_by(pid);
    }

    /// As [`DirectoryVolume::clean_step`].
    ///
    /// # Errors
    /// See [`CleanError`].
    pub fn clean_step(&self) -> Result<Cleaned, CleanError> {
        self.volume.clean_step()
    }

    /// As [`DirectoryVolume::run_cleaner`].
    pub fn run_cleaner(&self, stop: &AtomicBool) {
        self.volume.run_cleaner(stop);
    }

    /// As [`DirectoryVolume::let_go`].
    pub fn let_go(&self) {
        self.volume.let_go();
    }

    /// As [`DirectoryVolume::marks`].
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.volume.marks()
    }

    /// As [`DirectoryVolume::log_end`].
    #[must_use]
    pub fn log_end(&self) -> Lsn {
        self.volume.log_end()
    }

    /// As [`DirectoryVolume::detach`].
    ///
    /// # Errors
    /// See [`CleanError`]; it may be tried again.
    pub fn detach(&self) -> Result<(), CleanError> {
        self.volume.detach()
    }

    /// Gives the disk another size; what is cut off is gone, what is added reads as zeros. As
    /// durable as a write.
    ///
    /// # Errors
    /// See [`ResizeError`].
    pub fn resize(&self, size_bytes: u64) -> Result<(), ResizeError> {
        if size_bytes > SIZE_BYTES_MAX {
            return Err(ResizeError::TooLarge);
        }
        if self.is_device && size_bytes != self.size_bytes() {
            return Err(ResizeError::Device);
        }
        let set = SetAttributes { size_bytes: Some(size_bytes), ..SetAttributes::default() };
        let resized = self.change(|spot, body| self.volume.set_once(spot, body, &set));
        resized.map_err(|errno| ResizeError::Failed(io::Error::from_raw_os_error(errno.0)))
    }

    /// Repeats `attempt` under the lock that orders its effects, until the log has room. Which file
    /// it is about is known once and for all, so no name is looked at.
    fn change<T>(
        &self,
        attempt: impl Fn(Spot<'_>, &mut Body) -> Result<T, Stop>,
    ) -> Result<T, Errno> {
        let path = OneFile::NAME.as_bytes();
        let spot = Spot { node: self.node.id, parent: ROOT, path, at_home: AtHome::default() };
        self.volume.with_room(|| attempt(spot, &mut self.node.body_mut()))
    }

    /// [`Self::change`] of a range, which must be on the disk then.
    fn change_range(
        &self,
        offset: u64,
        bytes: u64,
        attempt: impl Fn(Spot<'_>, &mut Body) -> Result<(), Stop>,
    ) -> Result<(), BlocksError> {
        let changed = self.change(|spot, body| match is_within(body, offset, bytes) {
            true => attempt(spot, body).map(Ok),
            false => Ok(Err(BlocksError::OutOfRange)),
        });
        changed.map_err(blocks_error)?
    }

    /// Refuses a range that is not wholly on the disk.
    fn check_range(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        match is_within(&self.node.body(), offset, bytes) {
            true => Ok(()),
            false => Err(BlocksError::OutOfRange),
        }
    }

    /// The part of a read that needs the home. Nobody is kept waiting for its disk: the log's bytes
    /// are put over what the home gave afterwards, unless the cleaner let go of some meanwhile,
    /// which the home may have got too late to give them.
    fn read_through(&self, into: &mut [u8], offset: u64) -> Result<(), Errno> {
        let state = |body: &Body| (body.settled, body.cuts.valid_bytes());
        let before = state(&self.node.body());
        read_home(Some(&*self.file), before.1, into, offset)?;
        let body = self.node.body();
        if state(&body) != before {
            read_home(Some(&*self.file), body.cuts.valid_bytes(), into, offset)?;
        }
        self.volume.read_overlay(&body, into, offset)
    }

    fn allocate(&self, how: Allocate, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        if bytes == 0 {
            return self.check_range(offset, bytes);
        }
        self.change_range(offset, bytes, |spot, body| {
            self.volume.allocate_once(spot, body, how, offset, offset + bytes)
        })
    }
}

/// The one file's node. It is remembered as long as the volume is, so the cleaner finds it among
/// the names.
fn the_node(volume: &DirectoryVolume) -> Result<Arc<Node>, Errno> {
    let mut names = volume.names_mut();
    names.load(&*volume.home, ROOT)?;
    let node = names.open_child(&*volume.home, ROOT, OneFile::NAME.as_bytes())?;
    node.remember();
    Ok(node)
}

/// Most data in one frame, of a log whose payloads are at most as long.
fn atomic_bytes_max(payload_bytes_max: u64) -> usize {
    let most = payload_bytes_max.saturating_sub(RECORDS_BYTES_MAX).min(ATOMIC_BYTES_MAX);
    let whole = most - most % BLOCK_BYTES;
    assert!(whole > 0, "a log that takes no frame of {BLOCK_BYTES} bytes");
    whole as usize
}

fn is_within(body: &Body, offset: u64, bytes: u64) -> bool {
    offset.checked_add(bytes).is_some_and(|end| end <= body.attributes.size_bytes)
}

fn blocks_error(errno: Errno) -> BlocksError {
    match errno {
        Errno::NOSPC => BlocksError::NoSpace,
        Errno(number) => BlocksError::Failed(io::Error::from_raw_os_error(number)),
    }
}

impl Blocks for BlockVolume {
    fn size_bytes(&self) -> u64 {
        self.node.body().attributes.size_bytes
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError> {
        {
            let body = self.node.body();
            let bytes = into.len() as u64;
            if !is_within(&body, offset, bytes) {
                return Err(BlocksError::OutOfRange);
            }
            if body.extents.covers(offset, bytes) {
                return self.volume.read_overlay(&body, into, offset).map_err(blocks_error);
            }
        }
        self.read_through(into, offset).map_err(blocks_error)
    }

    fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError> {
        let bytes = from.len() as u64;
        self.check_range(offset, bytes)?;
        let mut at = offset;
        for piece in from.chunks(self.atomic_bytes_max) {
            self.change_range(at, piece.len() as u64, |spot, body| {
                self.volume.write_once(spot, body, piece, at, false)
            })?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.check_range(offset, bytes)?;
        self.allocate(Allocate::ZeroRange { keep_size: true }, offset, bytes)
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.allocate(Allocate::PunchHole, offset, bytes)
    }

    fn extent_at(&self, offset: u64) -> Result<Extent, BlocksError> {
        extent_in(&self.node.body(), offset).ok_or(BlocksError::OutOfRange)
    }

    fn flush(&self) -> Result<(), BlocksError> {
        self.volume.sync(self.node.id).map_err(blocks_error)
    }

    fn atomic_bytes_max(&self) -> usize {
        self.atomic_bytes_max
    }
}

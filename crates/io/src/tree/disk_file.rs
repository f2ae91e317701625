//! A disk as a file, for trees that show one.
//!
//! Promise: the file has the disk's bytes and its size. A read ends where the disk ends; a change
//! behind that is "no space", as on a device.
//! Never: knows the file's name or attributes.

use crate::Blocks;
use crate::tree::errno::Errno;
use crate::tree::{Allocate, Seek};

/// What a file has that is a disk: bytes.
///
/// Durability: that of the disk.
pub struct DiskFile<'d> {
    blocks: &'d dyn Blocks,
}

impl<'d> DiskFile<'d> {
    /// The disk, if it is what somebody means; otherwise he means a directory.
    ///
    /// # Errors
    /// `EISDIR`.
    pub fn meant(blocks: &'d dyn Blocks, is_meant: bool) -> Result<DiskFile<'d>, Errno> {
        if is_meant { Ok(DiskFile { blocks }) } else { Err(Errno::ISDIR) }
    }

    /// Reads; fewer bytes than asked means the end of the disk.
    ///
    /// # Errors
    /// As the disk's.
    pub fn read(&self, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let bytes = self.bytes_within(offset, into.len() as u64) as usize;
        if bytes > 0 {
            self.blocks.read(&mut into[..bytes], offset)?;
        }
        Ok(bytes)
    }

    /// Writes all of `from`.
    ///
    /// # Errors
    /// As the disk's; `ENOSPC` behind its end.
    pub fn write(&self, from: &[u8], offset: u64) -> Result<(), Errno> {
        // Nothing fits everywhere.
        if from.is_empty() { Ok(()) } else { Ok(self.blocks.write(from, offset)?) }
    }

    /// Changes a range as [`crate::tree::Tree::allocate`] does. `reserve` reserves one that is on
    /// the disk.
    ///
    /// # Errors
    /// `EINVAL` for a range of nothing, `ENOSPC` behind the end, or as the disk's.
    pub fn allocate(
        &self,
        how: Allocate,
        offset: u64,
        bytes: u64,
        reserve: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match how {
            _ if bytes == 0 => Err(Errno::INVAL),
            Allocate::PunchHole => Ok(self.blocks.discard(offset, bytes)?),
            Allocate::ZeroRange { .. } => Ok(self.blocks.write_zeroes(offset, bytes)?),
            Allocate::Reserve { .. } if self.bytes_within(offset, bytes) == bytes => reserve(),
            Allocate::Reserve { .. } => Err(Errno::NOSPC),
        }
    }

    /// Where the next data or hole begins, at `offset` or behind it.
    ///
    /// # Errors
    /// As the disk's; `ENXIO` if there is none before the end.
    pub fn seek(&self, offset: u64, what: Seek) -> Result<u64, Errno> {
        let size_bytes = self.blocks.size_bytes();
        let mut at = offset;
        while at < size_bytes {
            let extent = self.blocks.extent_at(at)?;
            if extent.is_hole == (what == Seek::Hole) {
                return Ok(at);
            }
            at = extent.end;
        }
        match what {
            Seek::Hole if offset < size_bytes => Ok(size_bytes),
            _ => Err(Errno::NXIO),
        }
    }

    /// What is left of a range that may end behind the disk.
    fn bytes_within(&self, offset: u64, bytes: u64) -> u64 {
        bytes.min(self.blocks.size_bytes().saturating_sub(offset))
    }
}

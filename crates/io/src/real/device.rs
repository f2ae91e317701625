//! One open block device, which looks like an ordinary file that cannot change its size.
//!
//! Promise: the size is the device's, all of it counts as allocated, and [`Metadata::rdev`] tells
//! it from a file; a range that is punched reads as zeros, also on a device that makes none itself.
//! Never: grows, shrinks, or bypasses the page cache.

use std::io;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, ioctl_blksszget, seek};
use rustix::io::Errno;

use super::open_file::RealFile;
use crate::{Allocation, Change, Kind, Metadata, OpenFile, Seek, Space};

/// Zeros written at once to a device that makes none itself.
const ZEROS_BYTES: usize = 1 << 20;

/// A block device of this machine.
#[derive(Debug)]
pub(super) struct RealDevice {
    file: RealFile,
    size_bytes: u64,
    /// What the device is asked to zero starts and ends at multiples of this.
    sector_bytes: u64,
}

impl RealDevice {
    /// Takes a descriptor that is open on a block device.
    pub(super) fn new(file: RealFile) -> io::Result<RealDevice> {
        // The one use of the descriptor's own position.
        let size_bytes = seek(&file.fd, SeekFrom::End(0))?;
        let sector_bytes = u64::from(ioctl_blksszget(&file.fd)?);
        Ok(RealDevice { file, size_bytes, sector_bytes })
    }

    /// Zeroes a range, its whole sectors by the device itself if it knows how.
    fn make_zeros(&self, how: FallocateFlags, offset: u64, bytes: u64) -> io::Result<()> {
        let end = offset.checked_add(bytes).ok_or(Errno::INVAL)?.min(self.size_bytes);
        let first = offset.next_multiple_of(self.sector_bytes);
        let last = end - end % self.sector_bytes;
        if first >= last {
            return self.write_zeros(offset, end.saturating_sub(offset));
        }
        self.write_zeros(offset, first - offset)?;
        self.zero_sectors(how, first, last - first)?;
        self.write_zeros(last, end - last)
    }

    fn zero_sectors(&self, how: FallocateFlags, offset: u64, bytes: u64) -> io::Result<()> {
        match fallocate(self.file.to_change()?, how | FallocateFlags::KEEP_SIZE, offset, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(offset, bytes),
            outcome => Ok(outcome?),
        }
    }

    fn write_zeros(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let zeros = vec![0; usize::try_from(bytes).unwrap_or(ZEROS_BYTES).min(ZEROS_BYTES)];
        let mut done = 0;
        while done < bytes {
            let part = (bytes - done).min(ZEROS_BYTES as u64) as usize;
            self.write_all_at(&zeros[..part], offset + done)?;
            done += part as u64;
        }
        Ok(())
    }
}

impl OpenFile for RealDevice {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(from, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write_through_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_through_at(from, offset)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        if bytes == self.size_bytes { Ok(()) } else { Err(Errno::INVAL.into()) }
    }

    /// All of it is there already.
    fn reserve(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.make_zeros(FallocateFlags::PUNCH_HOLE, offset, bytes)
    }

    fn zero(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.make_zeros(FallocateFlags::ZERO_RANGE, offset, bytes)
    }

    /// A device has no holes.
    fn seek(&self, offset: u64, what: Seek) -> io::Result<Option<u64>> {
        let found = if what == Seek::Data { offset } else { self.size_bytes };
        Ok((offset < self.size_bytes).then_some(found))
    }

    fn metadata(&self) -> io::Result<Metadata> {
        let (size_bytes, allocated_bytes) = (self.size_bytes, self.size_bytes);
        Ok(Metadata { kind: Kind::File, size_bytes, allocated_bytes, ..self.file.metadata()? })
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        self.file.change(change)
    }

    /// None is left, and none is needed.
    fn space(&self) -> io::Result<Space> {
        Ok(Space {
            total_bytes: self.size_bytes,
            free_bytes: 0,
            available_bytes: 0,
            ..self.file.space()?
        })
    }

    /// A sector is there, whatever it is asked to forget.
    fn allocation(&self) -> io::Result<Allocation> {
        Ok(Allocation { reserves: true, gives_back: false })
    }

    fn writes_in_place(&self) -> bool {
        true
    }
}

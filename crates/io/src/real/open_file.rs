//! One open ordinary file, by positioned system calls.
//!
//! Promise: no shared file position, so any number of threads may use one file.
//! Never: changes anything in a process that was forked from the one that opened it; repeats a
//! failed sync, whose second success would say nothing.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    FallocateFlags, FileType, Mode, OFlags, SeekFrom, fallocate, fchmod, fchown, fcntl_getfl,
    fcntl_setfl, fdatasync, fstat, fstatvfs, fsync, ftruncate, futimens, seek,
};
use rustix::io::{Errno, ReadWriteFlags, pread, pwrite, pwritev2};

use super::file_systems::{allocation_of, room_unit_told, writes_in_place};
use super::raw::extents_behind;
use super::stat::{describe_open, owner, space_of, times};
use crate::{Allocation, Change, Metadata, OpenFile, Opener, Seek, Space};

/// An ordinary file of this machine.
#[derive(Debug)]
pub(super) struct RealFile {
    pub(super) fd: OwnedFd,
    opener: Opener,
}

impl RealFile {
    /// Refuses what is not an ordinary file, then sets the way of transfer.
    pub(super) fn new(fd: OwnedFd, direct: bool) -> io::Result<RealFile> {
        match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(Errno::ISDIR.into()),
            _ => return Err(Errno::INVAL.into()),
        }
        if direct {
            bypass_page_cache(&fd)?;
        }
        Ok(RealFile::of(fd))
    }

    /// Whatever it is.
    pub(super) fn of(fd: OwnedFd) -> RealFile {
        RealFile { fd, opener: Opener::this_process() }
    }

    /// The way to every change. A sync is one: of all that share an open file, the kernel tells one
    /// that a write has failed.
    pub(super) fn to_change(&self) -> io::Result<&OwnedFd> {
        self.opener.check()?;
        Ok(&self.fd)
    }
}

/// Sets `O_DIRECT` after the file is open: asked for while creating, a file system without it would
/// fail and leave the new file behind.
fn bypass_page_cache(fd: &OwnedFd) -> io::Result<()> {
    match fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::DIRECT) {
        // This file system has no direct transfers.
        Err(Errno::INVAL) => Ok(()),
        outcome => Ok(outcome?),
    }
}

impl OpenFile for RealFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(pread(&self.fd, into, offset)?)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        Ok(pwrite(self.to_change()?, from, offset)?)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(fdatasync(self.to_change()?)?)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(fsync(self.to_change()?)?)
    }

    fn write_through_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        match pwritev2(self.to_change()?, &[IoSlice::new(from)], offset, ReadWriteFlags::DSYNC) {
            // This file system, or this kernel, has no such call.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let bytes = self.write_at(from, offset)?;
                self.sync_data()?;
                Ok(bytes)
            }
            outcome => Ok(outcome?),
        }
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        Ok(ftruncate(self.to_change()?, bytes)?)
    }

    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        Ok(fallocate(self.to_change()?, FallocateFlags::KEEP_SIZE, offset, bytes)?)
    }

    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(self.to_change()?, flags, offset, bytes)?)
    }

    fn zero(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
        match fallocate(self.to_change()?, flags, offset, bytes) {
            Err(Errno::OPNOTSUPP) => {
                self.punch(offset, bytes)?;
                self.reserve(offset, bytes)
            }
            outcome => Ok(outcome?),
        }
    }

    fn seek(&self, offset: u64, what: Seek) -> io::Result<Option<u64>> {
        let from = match what {
            Seek::Data => SeekFrom::Data(offset),
            Seek::Hole => SeekFrom::Hole(offset),
        };
        match seek(&self.fd, from) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn may_have_room_behind(&self, offset: u64) -> io::Result<bool> {
        Ok(extents_behind(&self.fd, offset).map_or(true, |extents| extents > 0))
    }

    fn metadata(&self) -> io::Result<Metadata> {
        describe_open(&self.fd)
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        let fd = self.to_change()?;
        // The owner first: changing it clears the set-user-id bits that the mode may set.
        if let Some((uid, gid)) = owner(change) {
            fchown(fd, uid, gid)?;
        }
        if let Some(mode) = change.mode {
            fchmod(fd, Mode::from_raw_mode(mode & 0o7777))?;
        }
        if let Some(times) = times(fd, change)? {
            futimens(fd, &times)?;
        }
        Ok(())
    }

    fn space(&self) -> io::Result<Space> {
        let space = fstatvfs(&self.fd)?;
        Ok(space_of(&space, room_unit_told(self.fd.as_fd(), &space)))
    }

    fn allocation(&self) -> io::Result<Allocation> {
        Ok(allocation_of(self.fd.as_fd()))
    }

    fn writes_in_place(&self) -> bool {
        writes_in_place(self.fd.as_fd())
    }
}

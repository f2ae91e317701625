//! One open file of a fake machine.
//!
//! Promise: usable after its name is gone, as on Linux; strict about the alignment of direct
//! transfers, so that nothing works here and fails on a disk with blocks of 4096 bytes.
//! Never: survives a power cut.

use std::io;

use rustix::io::Errno;

use super::FakeFiles;
use super::contents::BLOCK_BYTES;
use super::faults::{Effect, Operation};
use super::turn::Outcome;
use crate::{Allocation, Change, Files, Metadata, OpenFile, OpenHow, Seek, Space};

/// Offsets on Linux are signed.
const OFFSET_MAX: u64 = i64::MAX as u64;

/// A file in memory.
#[derive(Debug)]
pub(super) struct FakeFile {
    files: FakeFiles,
    inode: u64,
    how: OpenHow,
}

impl FakeFile {
    /// Takes over one count of the inode's open handles.
    pub(super) fn new(files: FakeFiles, inode: u64, how: OpenHow) -> FakeFile {
        FakeFile { files, inode, how }
    }

    /// What Linux, and the strictest disk, ask of a read or write.
    fn check_transfer(&self, bytes: &[u8], offset: u64) -> Outcome<()> {
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > OFFSET_MAX) {
            return Err(Errno::INVAL);
        }
        let numbers = [bytes.as_ptr().addr() as u64, bytes.len() as u64, offset];
        if self.how.direct && numbers.iter().any(|number| number % BLOCK_BYTES != 0) {
            return Err(Errno::INVAL);
        }
        Ok(())
    }

    /// What `fallocate` asks.
    fn check_range(&self, offset: u64, bytes: u64) -> Outcome<()> {
        if !self.how.write {
            return Err(Errno::BADF);
        }
        if bytes == 0 || offset.checked_add(bytes).is_none_or(|end| end > OFFSET_MAX) {
            return Err(Errno::INVAL);
        }
        Ok(())
    }
}

impl Drop for FakeFile {
    fn drop(&mut self) {
        let mut machine = self.files.lock();
        let inode = machine.inode_mut(self.inode);
        inode.opens -= 1;
        inode.writers -= u32::from(self.how.write);
        machine.forget_if_gone(self.inode);
    }
}

impl OpenFile for FakeFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.files.call(Operation::Read, |machine, turn| {
            self.check_transfer(into, offset)?;
            let wanted = match turn.effect {
                Some(Effect::Short) => machine.shortened(into.len(), self.how.direct),
                _ => into.len(),
            };
            Ok(machine.inode(self.inode).history.volatile.read(&mut into[..wanted], offset))
        })
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.files.call(Operation::Write, |machine, turn| {
            if !self.how.write {
                return Err(Errno::BADF);
            }
            self.check_transfer(from, offset)?;
            machine.check_size(offset + from.len() as u64)?;
            machine.write(turn, self.inode, from, offset, self.how.direct)
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.files.call(Operation::SyncData, |machine, turn| {
            let history = &mut machine.inode_mut(self.inode).history;
            if turn.effect == Some(Effect::DropsDirty) {
                history.drop_dirty();
                return Err(Errno::IO);
            }
            // A sync that the power interrupts may have carried anything down; luck decides.
            if !turn.cut {
                history.sync();
                machine.sync_attributes(self.inode);
            }
            Ok(())
        })
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.files.call(Operation::SetLen, |machine, turn| {
            if !self.how.write || bytes > OFFSET_MAX {
                return Err(Errno::INVAL);
            }
            machine.check_size(bytes)?;
            machine.set_len(turn, self.inode, bytes);
            Ok(())
        })
    }

    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.files.call(Operation::Reserve, |machine, turn| {
            self.check_range(offset, bytes)?;
            machine.check_has(machine.limits.allocation.reserves)?;
            machine.check_size(offset + bytes)?;
            machine.reserve(turn, self.inode, offset, bytes)
        })
    }

    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.files.call(Operation::Punch, |machine, turn| {
            self.check_range(offset, bytes)?;
            machine.check_has(machine.limits.allocation.gives_back)?;
            machine.punch(turn, self.inode, offset, bytes);
            Ok(())
        })
    }

    fn seek(&self, offset: u64, what: Seek) -> io::Result<Option<u64>> {
        self.files.call(Operation::Seek, |machine, _| {
            Ok(machine.inode(self.inode).history.volatile.seek(offset, what))
        })
    }

    fn may_have_room_behind(&self, offset: u64) -> io::Result<bool> {
        self.files.call(Operation::Seek, |machine, _| {
            Ok(machine.inode(self.inode).history.volatile.has_room_behind(offset))
        })
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.files.call(Operation::Metadata, |machine, _| Ok(machine.metadata(self.inode)))
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        self.files.call(Operation::Change, |machine, turn| {
            machine.change(turn.number, self.inode, change)
        })
    }

    fn space(&self) -> io::Result<Space> {
        self.files.call(Operation::Space, |machine, _| Ok(machine.space()))
    }

    fn allocation(&self) -> io::Result<Allocation> {
        self.files.allocation()
    }

    fn writes_in_place(&self) -> bool {
        self.files.writes_in_place()
    }
}

//! Bytes on their way into files: what fits, what arrives, and where.
//!
//! Promise: allocation is counted in pages, of 4096 bytes if nobody says otherwise, as on a disk.
//! Never: refuses a write to what is already allocated.

use rustix::io::Errno;

use super::Effect;
use super::contents::{BLOCK_BYTES, Contents, Delivery, SECTOR_BYTES};
use super::machine::Machine;
use super::turn::{Outcome, Turn};
use crate::Space;

/// Told as the size of a disk without a limit.
const UNLIMITED_BYTES: u64 = 1 << 40;

impl Machine {
    /// Bytes allocated to files that somebody can still read.
    pub(super) fn used_bytes(&self) -> u64 {
        let live = self.inodes.values().filter(|inode| inode.is_live());
        live.map(|inode| inode.history.volatile.allocated_bytes()).sum::<u64>() + self.names_bytes()
    }

    /// Bytes that can still be allocated.
    pub(super) fn free_bytes(&self) -> u64 {
        self.capacity_bytes.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used_bytes()))
    }

    /// What `statfs` tells.
    pub(super) fn space(&self) -> Space {
        let total_bytes = self.capacity_bytes.unwrap_or(UNLIMITED_BYTES);
        let free_bytes = total_bytes.saturating_sub(self.used_bytes());
        Space {
            total_bytes,
            free_bytes,
            available_bytes: free_bytes,
            total_inodes: self.limits.inodes_max,
            free_inodes: self.limits.inodes_max.saturating_sub(self.live_inodes()),
            name_bytes_max: self.limits.name_bytes_max,
            block_bytes: 4096,
            room_unit_bytes: self.limits.room_unit_bytes,
            read_only: self.read_only,
        }
    }

    /// Writes as much as fits and as the turn allows.
    pub(super) fn write(
        &mut self,
        turn: Turn,
        number: u64,
        from: &[u8],
        offset: u64,
        direct: bool,
    ) -> Outcome<usize> {
        if from.is_empty() {
            return Ok(0);
        }
        let bytes = match turn.effect {
            Some(Effect::Short) => self.shortened(from.len(), direct),
            _ => from.len(),
        };
        // As on Linux, a write that fits in part is short, and only the next one fails.
        let free_bytes = self.free_bytes();
        let history = &self.inode(number).history;
        let fitting = match self.limits.writes_in_place {
            true => history.volatile.fitting(offset, bytes as u64, free_bytes) as usize,
            false => {
                let nowhere = Contents::new(self.limits.room_unit_bytes);
                nowhere.fitting(offset, bytes as u64, free_bytes) as usize
            }
        };
        if fitting == 0 {
            return Err(Errno::NOSPC);
        }
        let delivery = match turn.effect {
            Some(Effect::LostWrite) => Delivery::Lost,
            Some(Effect::MisdirectedWrite) => self.misdirected(number, offset, fitting as u64),
            _ => Delivery::Sound,
        };
        let now_ns = self.now_ns;
        let inode = self.inode_mut(number);
        inode.history.write(turn.number, &from[..fitting], offset, delivery, direct);
        inode.touch(now_ns);
        self.contents_changed(turn, number);
        Ok(fitting)
    }

    /// A length shorter than `bytes`, if one is possible.
    pub(super) fn shortened(&mut self, bytes: usize, direct: bool) -> usize {
        let unit = if direct { BLOCK_BYTES } else { 1 };
        let units = bytes as u64 / unit;
        if units < 2 {
            return bytes;
        }
        ((1 + self.random.below(units - 1)) * unit) as usize
    }

    /// Another place of the same file, off by whole sectors.
    fn misdirected(&mut self, number: u64, offset: u64, bytes: u64) -> Delivery {
        let size_bytes = self.inode(number).history.volatile.size_bytes();
        let room = size_bytes.saturating_sub(bytes) / SECTOR_BYTES;
        let within = offset % SECTOR_BYTES;
        let chosen = self.random.below(room.max(1)) * SECTOR_BYTES + within;
        Delivery::Misdirected(if chosen == offset { offset + SECTOR_BYTES } else { chosen })
    }

    /// Cuts or extends a file.
    pub(super) fn set_len(&mut self, turn: Turn, number: u64, bytes: u64) {
        let (now_ns, growing_frees) = (self.now_ns, self.limits.growing_frees);
        let inode = self.inode_mut(number);
        inode.history.set_len(turn.number, bytes, growing_frees);
        inode.touch(now_ns);
        self.contents_changed(turn, number);
    }

    /// Allocates a range, wholly or not at all.
    pub(super) fn reserve(
        &mut self,
        turn: Turn,
        number: u64,
        offset: u64,
        bytes: u64,
    ) -> Outcome<()> {
        let free_bytes = self.free_bytes();
        let now_ns = self.now_ns;
        let inode = self.inode_mut(number);
        if inode.history.volatile.fitting(offset, bytes, free_bytes) < bytes {
            return Err(Errno::NOSPC);
        }
        inode.history.volatile.reserve(offset, bytes);
        inode.touch(now_ns);
        self.contents_changed(turn, number);
        Ok(())
    }

    /// Makes a hole.
    pub(super) fn punch(&mut self, turn: Turn, number: u64, offset: u64, bytes: u64) {
        let (now_ns, punches_behind_end) = (self.now_ns, self.limits.punches_behind_end);
        let inode = self.inode_mut(number);
        let size_bytes = inode.history.volatile.size_bytes();
        let end_max = match punches_behind_end {
            true => u64::MAX,
            false => size_bytes.next_multiple_of(inode.history.volatile.page_bytes()),
        };
        let bytes = bytes.min(end_max.saturating_sub(offset));
        inode.history.punch(turn.number, offset, bytes);
        inode.touch(now_ns);
        self.contents_changed(turn, number);
    }
}

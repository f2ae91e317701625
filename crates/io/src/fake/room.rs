//! What a fake machine has room for, by its limits.
//!
//! Promise: without being asked for, no limit is ever met.
//! Never: counts bytes: that is `transfer`.

use rustix::io::Errno;

use super::FakeLimits;
use super::inode::Inode;
use super::machine::Machine;
use super::turn::Outcome;

/// Bytes beside a name in a directory.
pub(crate) const ENTRY_BYTES: u64 = 12;

impl Machine {
    /// Refuses a file of so many bytes.
    pub(super) fn check_size(&self, size_bytes: u64) -> Outcome<()> {
        let fits = size_bytes <= self.limits.limits.file_bytes_max;
        if fits { Ok(()) } else { Err(Errno::FBIG) }
    }

    /// Refuses a call that the file system does not have.
    pub(super) fn check_has(&self, has: bool) -> Outcome<()> {
        if has { Ok(()) } else { Err(Errno::OPNOTSUPP) }
    }

    /// Refuses one more node.
    pub(super) fn check_inodes(&self) -> Outcome<()> {
        self.check_more_inodes(1)
    }

    fn check_more_inodes(&self, more: u64) -> Outcome<()> {
        let unlimited = self.limits.inodes_max == FakeLimits::default().inodes_max;
        let fits = unlimited || self.live_inodes() + more <= self.limits.inodes_max;
        if fits { Ok(()) } else { Err(Errno::NOSPC) }
    }

    /// Refuses an extended attribute for which there are no inodes. The one that it takes the place
    /// of has its own until then.
    pub(super) fn check_xattr_room(&self, name: &[u8], value: &[u8]) -> Outcome<()> {
        match self.limits.limits.xattr_inodes(name, value) {
            0 => Ok(()),
            more => self.check_more_inodes(more),
        }
    }

    fn xattrs_inodes(&self, inode: &Inode) -> u64 {
        let values = inode.attributes.xattrs.values.iter();
        values.map(|(name, value)| self.limits.limits.xattr_inodes(name, value)).sum()
    }

    /// The root has no name.
    pub(super) fn live_inodes(&self) -> u64 {
        let names = |inode: &Inode| match self.limits.limits.links_take_inodes {
            true => inode.parents.len().max(1) as u64,
            false => 1,
        };
        let taken = |inode: &Inode| names(inode) + self.xattrs_inodes(inode);
        1 + self.inodes.values().filter(|inode| inode.is_live()).map(taken).sum::<u64>()
    }

    /// Refuses one more name of a node.
    pub(super) fn check_links(&self, number: u64) -> Outcome<()> {
        let links = self.inode(number).parents.len() as u64;
        if links >= self.limits.limits.links_max.into() {
            return Err(Errno::MLINK);
        }
        if self.limits.limits.links_take_inodes { self.check_inodes() } else { Ok(()) }
    }

    /// Refuses a name for which the directory has no room.
    pub(super) fn check_name_room(&self, dir: u64, name: &[u8]) -> Outcome<()> {
        if !self.limits.names_take_room {
            return Ok(());
        }
        let names = &self.inode(dir).names;
        let entry = |name: &[u8]| name.len() as u64 + ENTRY_BYTES;
        let now: u64 = names.keys().map(|name| entry(name)).sum();
        let unit_bytes = self.limits.room_unit_bytes;
        let grows = (now + entry(name)).div_ceil(unit_bytes) > now.div_ceil(unit_bytes).max(1);
        if grows && self.free_bytes() < unit_bytes { Err(Errno::NOSPC) } else { Ok(()) }
    }

    /// What names take.
    pub(super) fn names_bytes(&self) -> u64 {
        if !self.limits.names_take_room {
            return 0;
        }
        let unit_bytes = self.limits.room_unit_bytes;
        let live = self.inodes.values().filter(|inode| inode.is_live() && inode.is_dir());
        let entries = live.map(|dir| {
            let bytes = dir.names.keys().map(|name| name.len() as u64 + ENTRY_BYTES).sum::<u64>();
            bytes.div_ceil(unit_bytes).max(1) * unit_bytes
        });
        entries.sum()
    }
}

//! What a fake machine takes at most.
//!
//! Promise: without being asked for, no limit is ever met.
//! Never: applies a limit: that is `room`.

use super::contents::BLOCK_BYTES;
use crate::{Allocation, Limits};

/// Longest name, as in most file systems.
const NAME_BYTES_MAX: usize = 255;

/// What there can be of each thing.
#[derive(Clone, Copy, Debug)]
pub struct FakeLimits {
    /// What a file can be.
    pub limits: Limits,
    /// Files, directories and other nodes.
    pub inodes_max: u64,
    /// Bytes of a name.
    pub name_bytes_max: u32,
    /// Names take room, by blocks, from what the files may have.
    pub names_take_room: bool,
    /// [`Files::sync_all`](crate::Files::sync_all) does something, as it does not everywhere.
    pub syncs_all: bool,
    /// What files and directories are given room in: those that are made from now on.
    pub room_unit_bytes: u64,
    /// What files do with room.
    pub allocation: Allocation,
    /// A block that has room is written there.
    pub writes_in_place: bool,
    /// A file that is made longer loses the room behind its new end, as one that is cut does, or
    /// one that gets the size that it has.
    pub growing_frees: bool,
    /// A hole takes the room behind the end too.
    pub punches_behind_end: bool,
}

impl Default for FakeLimits {
    fn default() -> FakeLimits {
        FakeLimits {
            limits: Limits {
                file_bytes_max: i64::MAX as u64,
                links_max: u32::MAX,
                links_take_inodes: false,
                xattr_inode_bytes: None,
            },
            inodes_max: 1 << 32,
            name_bytes_max: NAME_BYTES_MAX as u32,
            names_take_room: false,
            syncs_all: true,
            room_unit_bytes: BLOCK_BYTES,
            allocation: Allocation::ALL,
            writes_in_place: true,
            growing_frees: true,
            punches_behind_end: true,
        }
    }
}

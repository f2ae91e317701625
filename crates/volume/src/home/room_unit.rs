//! What the home gives room in: a block of its file system, or several of them at a time.
//!
//! Promise: every count of room is made in this unit, which the home was asked for when the volume
//! was opened.
//! Never: changes while the volume is open.

use holdfast_io::Space;

/// What the home gives room in; called a block wherever room is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoomUnit(u64);

impl Default for RoomUnit {
    /// What most homes have.
    fn default() -> RoomUnit {
        RoomUnit(4096)
    }
}

impl RoomUnit {
    /// The home's.
    pub(crate) fn of(home: &Space) -> RoomUnit {
        match home.room_unit_bytes {
            0 => RoomUnit::default(),
            bytes => RoomUnit(bytes),
        }
    }

    pub(crate) fn bytes(self) -> u64 {
        self.0
    }

    /// Bytes of all blocks that a range touches.
    pub(crate) fn blocks_bytes(self, offset: u64, bytes: u64) -> u64 {
        let (first, end) = self.touched(offset, bytes);
        (end - first) * self.0
    }

    /// Where the blocks that lie in a range wholly begin and end, if there are some.
    pub(crate) fn whole_blocks(self, offset: u64, bytes: u64) -> (u64, u64) {
        let end = offset.saturating_add(bytes) / self.0;
        (offset.div_ceil(self.0) * self.0, end * self.0)
    }

    /// The blocks that a range touches: the first, and the one behind the last.
    pub(crate) fn touched(self, offset: u64, bytes: u64) -> (u64, u64) {
        let end = offset.saturating_add(bytes).div_ceil(self.0);
        let first = if bytes == 0 { end } else { offset / self.0 };
        (first, end)
    }
}

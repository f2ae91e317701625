//! Which blocks of a file have room: on the home, or there as soon as the log comes home.
//!
//! Promise: a block that a program has written to, or reserved, is among them until it is given
//! back; those that the home had before are those that it names, or all if they are as many.
//! Never: says where they are.

use std::collections::BTreeMap;
use std::io;

use holdfast_io::{Metadata, OpenFile, Seek};

use crate::home::room_unit::RoomUnit;

/// Blocks of one file, as ranges of block numbers that do not touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allocated {
    unit: RoomUnit,
    /// By the first block; the value is the block behind the last.
    ranges: BTreeMap<u64, u64>,
    blocks: u64,
    /// Room that the home counts and no block of the contents is known for, such as what was
    /// reserved behind the end.
    other_bytes: u64,
    /// The home counts room for less than what it calls data, so any block may have none: its file
    /// system tells of no holes, or packs what it has.
    is_vague: bool,
}

impl Allocated {
    /// No block has room.
    pub(crate) fn none(unit: RoomUnit) -> Allocated {
        let ranges = BTreeMap::new();
        Allocated { unit, ranges, blocks: 0, other_bytes: 0, is_vague: false }
    }

    /// What the home's file has.
    pub(crate) fn of(
        file: &dyn OpenFile,
        metadata: &Metadata,
        unit: RoomUnit,
    ) -> io::Result<Allocated> {
        let mut found = Allocated::none(unit);
        let size_bytes = metadata.size_bytes;
        let end = size_bytes.next_multiple_of(unit.bytes());
        // Room that nobody has written to is no data. Behind the end it would pass for what is
        // missing before that.
        if metadata.allocated_bytes >= end && !file.may_have_room_behind(end)? {
            found.insert(0, size_bytes);
        } else {
            let (mut at, mut data_bytes) = (0, 0);
            while let Some(data) = file.seek(at, Seek::Data)? {
                at = file.seek(data, Seek::Hole)?.unwrap_or(size_bytes);
                found.insert(data, at - data);
                data_bytes += at - data;
            }
            found.is_vague = metadata.allocated_bytes < data_bytes;
        }
        found.other_bytes = metadata.allocated_bytes.saturating_sub(found.bytes());
        Ok(found)
    }

    /// Bytes of all blocks.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks * self.unit.bytes() + self.other_bytes
    }

    /// Whether any block may have no room.
    pub(crate) fn is_vague(&self) -> bool {
        self.is_vague
    }

    /// Bytes of those blocks that the range touches and that have no room, or may have none.
    pub(crate) fn missing(&self, offset: u64, bytes: u64) -> u64 {
        if self.is_vague {
            return self.unit.blocks_bytes(offset, bytes);
        }
        let (first, end) = self.unit.touched(offset, bytes);
        let there = self.within(first, end).map(|(from, to)| to.min(end) - from.max(first));
        (end - first - there.sum::<u64>()) * self.unit.bytes()
    }

    /// Every block that the range touches has room.
    pub(crate) fn insert(&mut self, offset: u64, bytes: u64) {
        let (mut first, mut end) = self.unit.touched(offset, bytes);
        if first == end {
            return;
        }
        // Neighbours become one range with it.
        let hit: Vec<(u64, u64)> = self.within(first.saturating_sub(1), end + 1).collect();
        for (from, to) in hit {
            self.take(from, to);
            (first, end) = (first.min(from), end.max(to));
        }
        self.put(first, end);
    }

    /// The blocks that lie in the range wholly have none.
    pub(crate) fn remove(&mut self, offset: u64, bytes: u64) {
        let (first, end) = self.unit.whole_blocks(offset, bytes);
        let (first, end) = (first / self.unit.bytes(), end / self.unit.bytes());
        let hit: Vec<(u64, u64)> = self.within(first, end).collect();
        for (from, to) in hit {
            self.take(from, to);
            self.put(from, first.max(from));
            self.put(end.min(to), to);
        }
    }

    /// Nothing behind the end has room.
    pub(crate) fn cut(&mut self, size_bytes: u64) {
        let behind = size_bytes.next_multiple_of(self.unit.bytes());
        self.remove(behind, u64::MAX - behind);
        self.other_bytes = 0;
    }

    /// Where the next of these blocks, or the next of the others, begins: at `offset` or behind it.
    pub(crate) fn seek(&self, offset: u64, what: Seek) -> Option<u64> {
        let block = offset / self.unit.bytes();
        let here = self.ranges.range(..=block).next_back().filter(|(_, end)| **end > block);
        let found = match (what, here) {
            (Seek::Data, Some(_)) => block,
            (Seek::Data, None) => *self.ranges.range(block..).next()?.0,
            (Seek::Hole, Some((_, end))) => *end,
            (Seek::Hole, None) => block,
        };
        Some((found * self.unit.bytes()).max(offset))
    }

    /// The ranges that reach into `[first, end)`.
    fn within(&self, first: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let before = self.ranges.range(..first).next_back().filter(move |(_, to)| **to > first);
        let inside =
            if first < end { self.ranges.range(first..end) } else { self.ranges.range(0..0) };
        let before = before.filter(move |_| first < end);
        before.into_iter().chain(inside).map(|(from, to)| (*from, *to))
    }

    fn put(&mut self, first: u64, end: u64) {
        if first < end {
            self.ranges.insert(first, end);
            self.blocks += end - first;
        }
    }

    fn take(&mut self, first: u64, end: u64) {
        self.ranges.remove(&first);
        self.blocks -= end - first;
    }
}

#[cfg(test)]
mod tests;

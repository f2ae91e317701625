//! What a node ends up with.
//!
//! Promise: of the room that the changes give and take, in their order, what is left: bringing all
//! of it home takes no room that they did not have in the end, each for itself.
//! Never: knows what the home has.

use std::collections::BTreeMap;

use holdfast_io::Change;
use holdfast_log::Lsn;

use crate::home::room_unit::RoomUnit;
use crate::overlay::extents::{Extents, Piece, Source};

/// What a node ends up with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Where it is once all names are applied.
    pub(crate) path: Vec<u8>,
    /// It came to be inside the window.
    pub(crate) made: bool,
    /// What the home's file holds behind this does not count, and nothing there has room.
    pub(crate) cut_bytes: Option<u64>,
    /// Its size, if something but a write changed it.
    pub(crate) size_bytes: Option<u64>,
    /// New bytes.
    pub(crate) extents: Extents,
    /// Ranges that get room.
    pub(crate) reserved: Extents,
    /// Ranges that would have got room, had nobody punched them since.
    pub(crate) punched: Extents,
    /// New attributes.
    pub(crate) change: Change,
    /// Extended attributes that are new, have another value, or go.
    pub(crate) xattrs: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl Contents {
    /// What was written or reserved behind the new end is gone, and so is what the home's file has
    /// there; but the block that it lies in keeps its room.
    pub(super) fn resize(&mut self, size_bytes: u64, at: Lsn, unit: RoomUnit) {
        let rest_bytes = size_bytes.next_multiple_of(unit.bytes()) - size_bytes;
        let has_room = |piece: Piece| piece.source != Source::Hole;
        let mut written = self.extents.within(size_bytes, rest_bytes);
        let mut reserved = self.reserved.within(size_bytes, rest_bytes);
        let is_kept = written.any(has_room) || reserved.any(has_room);
        drop((written, reserved));
        for ranges in [&mut self.extents, &mut self.reserved, &mut self.punched] {
            ranges.cut(size_bytes);
        }
        if is_kept {
            let (offset, source) = (size_bytes, Source::Zeros);
            self.reserved.insert(Piece { offset, bytes: rest_bytes, at, source });
        }
        self.cut_bytes = Some(self.cut_bytes.map_or(size_bytes, |cut| cut.min(size_bytes)));
        self.size_bytes = Some(size_bytes);
    }

    /// The blocks that lie in the range wholly lose their room, and no others, even if the next
    /// hole takes their other parts; what they hold becomes zeros.
    pub(super) fn punch(&mut self, offset: u64, bytes: u64, at: Lsn, unit: RoomUnit) {
        let end = offset.saturating_add(bytes);
        let (first, last) = unit.whole_blocks(offset, bytes);
        if first < last {
            let hole = Piece { offset: first, bytes: last - first, at, source: Source::Hole };
            self.reserved.split_off(first, last).for_each(|piece| self.punched.insert(piece));
            self.extents.insert(hole);
            self.zero_in_part(offset, first, at);
            self.zero_in_part(last, end, at);
        } else {
            self.zero_in_part(offset, end, at);
        }
    }

    /// A part of a block reads as zeros, and has the room that it had: what was written there is
    /// written as zeros, and what is a hole stays one, as a whole.
    fn zero_in_part(&mut self, from: u64, to: u64, at: Lsn) {
        let there: Vec<Piece> = self.extents.within(from, to - from).collect();
        let mut zero = |offset, end, source| {
            self.extents.insert(Piece { offset, bytes: end - offset, at, source });
        };
        let mut start = from;
        for piece in there {
            zero(start, piece.offset, Source::Hole);
            start = piece.offset + piece.bytes;
            if piece.source != Source::Hole {
                zero(piece.offset, start, Source::Zeros);
            }
        }
        zero(start, to, Source::Hole);
    }

    /// Where the file ends, as far as the window tells: at least here.
    pub(crate) fn end_bytes(&self) -> u64 {
        let written = self.extents.iter().map(|piece| piece.offset + piece.bytes).max();
        written.unwrap_or(0).max(self.size_bytes.unwrap_or(0))
    }
}

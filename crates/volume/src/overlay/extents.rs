//! Extents: which bytes of a file stand in the log rather than in the home.
//!
//! Promise: for every offset the newest piece put there, or none. Pieces point into the log by
//! LSN; no byte is copied.
//! Never: reads the log or the home.

use std::collections::BTreeMap;

use holdfast_log::Lsn;

/// A range of a file and where its bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// First byte of the range in the file.
    pub(crate) offset: u64,
    /// Length of the range.
    pub(crate) bytes: u64,
    /// Where the first byte stands in the log; without bytes, where the record stands.
    pub(crate) at: Lsn,
    /// What the range holds.
    pub(crate) source: Source,
}

/// What a range holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The bytes in the log.
    Log,
    /// Zeros, written by somebody who wants room for them.
    Zeros,
    /// Zeros, because somebody gave the room back.
    Hole,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset + self.bytes
    }

    /// The part of the piece inside `[from, to)`.
    fn clipped(&self, from: u64, to: u64) -> Piece {
        let offset = self.offset.max(from);
        let skipped = if self.source == Source::Log { offset - self.offset } else { 0 };
        let bytes = self.end().min(to) - offset;
        Piece { offset, bytes, at: Lsn(self.at.0 + skipped), source: self.source }
    }
}

/// The pieces of one file, none overlapping another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extents {
    by_offset: BTreeMap<u64, Piece>,
}

impl Extents {
    /// Puts a piece over whatever stood there.
    pub(crate) fn insert(&mut self, piece: Piece) {
        if piece.bytes == 0 {
            return;
        }
        self.clear(piece.offset, piece.end());
        self.by_offset.insert(piece.offset, piece);
    }

    /// Forgets everything at and behind `size_bytes`.
    pub(crate) fn cut(&mut self, size_bytes: u64) {
        self.clear(size_bytes, u64::MAX);
    }

    /// Takes what lies inside `[from, to)` away, and returns it.
    pub(crate) fn split_off(&mut self, from: u64, to: u64) -> impl Iterator<Item = Piece> {
        let within: Vec<Piece> = self.within(from, to - from).collect();
        self.clear(from, to);
        within.into_iter()
    }

    /// Forgets every piece that stands below `lsn`.
    pub(crate) fn drop_below(&mut self, lsn: Lsn) {
        self.by_offset.retain(|_, piece| piece.at >= lsn);
    }

    /// Forgets every piece that stands below `lsn` and reaches into one of `ranges`: what
    /// [`Self::drop_below`] does, where nothing below `lsn` is outside of them.
    pub(crate) fn drop_within(&mut self, ranges: &[Piece], lsn: Lsn) {
        let mut hit = Vec::new();
        for range in ranges {
            let last = self.by_offset.range(..range.end()).rev().map(|(_, piece)| piece);
            let within = last.take_while(|piece| piece.end() > range.offset);
            hit.extend(within.filter(|piece| piece.at < lsn).map(|piece| piece.offset));
            for offset in hit.drain(..) {
                self.by_offset.remove(&offset);
            }
        }
    }

    /// The pieces inside `[offset, offset + bytes)`, in order, clipped to it.
    pub(crate) fn within(&self, offset: u64, bytes: u64) -> impl Iterator<Item = Piece> {
        let end = offset.saturating_add(bytes);
        let first = self.by_offset.range(..offset).next_back().map_or(offset, |(start, _)| *start);
        self.by_offset
            .range(first..end)
            .filter(move |(_, piece)| piece.end() > offset)
            .map(move |(_, piece)| piece.clipped(offset, end))
    }

    /// True if no byte of the range is missing.
    pub(crate) fn covers(&self, offset: u64, bytes: u64) -> bool {
        let mut reached = offset;
        for piece in self.within(offset, bytes) {
            if piece.offset != reached {
                return false;
            }
            reached = piece.end();
        }
        reached == offset + bytes
    }

    /// All pieces, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Piece> {
        self.by_offset.values().copied()
    }

    /// True if there is no piece.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_offset.is_empty()
    }

    /// Takes away what stands in the range, and splits what reaches over its borders.
    fn clear(&mut self, from: u64, to: u64) {
        let hit: Vec<Piece> = self
            .by_offset
            .range(..to)
            .rev()
            .map(|(_, piece)| *piece)
            .take_while(|piece| piece.end() > from)
            .collect();
        for piece in hit {
            self.by_offset.remove(&piece.offset);
            if piece.offset < from {
                self.by_offset.insert(piece.offset, piece.clipped(0, from));
            }
            if piece.end() > to {
                self.by_offset.insert(to, piece.clipped(to, u64::MAX));
            }
        }
    }
}

#[cfg(test)]
mod tests;

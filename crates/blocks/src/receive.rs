//! A write whose bytes come one after another, into cells that are nobody's yet.
//!
//! Promise: the map names them once all bytes are there, all in one step; until then the disk is as
//! it was, whoever dies. As many cells stay spare as the longest write needs, so that a client that
//! sends slowly makes nobody wait.
//! Never: begins or ends inside a block: what is beside it there may change meanwhile.

use std::ops::Range;

use holdfast_io::BlocksError;

use crate::disk::Disk;
use crate::header::BLOCK_BYTES;
use crate::layout::WRITE_BYTES_MAX;
use crate::memory::Memory;
use crate::parts::parts;
use crate::spares::Taken;

/// A write that is coming. Dropped before its commit, it leaves nothing.
#[derive(Debug)]
pub(crate) struct Incoming<'d, M> {
    disk: &'d Disk<M>,
    cells: Taken<'d>,
    offset: u64,
    filled_bytes: usize,
}

impl<M: Memory> Disk<M> {
    /// Has cells filled by and by. `None`: it is no write of whole blocks, or too few are spare.
    pub(crate) fn incoming(&self, offset: u64, bytes: usize) -> Option<Incoming<'_, M>> {
        let is_whole =
            offset.is_multiple_of(BLOCK_BYTES as u64) && bytes.is_multiple_of(BLOCK_BYTES);
        if !is_whole || bytes > WRITE_BYTES_MAX || self.check_range(offset, bytes as u64).is_err() {
            return None;
        }
        let left = self.layout.cells_of_a_writer();
        let cells = self.spares.take_and_leave(bytes / BLOCK_BYTES, left)?;
        Some(Incoming { disk: self, cells, offset, filled_bytes: 0 })
    }
}

impl<M: Memory> Incoming<'_, M> {
    /// The memory of the disk.
    pub(crate) fn memory(&self) -> &M {
        self.disk.memory()
    }

    /// Bytes that have not come yet.
    pub(crate) fn left_bytes(&self) -> usize {
        self.cells.len() * BLOCK_BYTES - self.filled_bytes
    }

    /// Where they go.
    pub(crate) fn left(&self) -> Vec<Range<u64>> {
        self.places(self.filled_bytes, self.left_bytes())
    }

    /// Says that so many of them have come there.
    pub(crate) fn came(&mut self, bytes: usize) {
        assert!(bytes <= self.left_bytes(), "no more comes than there is room for");
        self.filled_bytes += bytes;
    }

    /// Puts bytes that have come elsewhere.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        for place in self.places(self.filled_bytes, bytes.len()) {
            let (piece, more) = rest.split_at((place.end - place.start) as usize);
            self.disk.memory().copy_in(place.start, piece);
            rest = more;
        }
        self.came(bytes.len());
    }

    /// What has come.
    pub(crate) fn filled(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.filled_bytes];
        let mut rest = bytes.as_mut_slice();
        for place in self.places(0, self.filled_bytes) {
            let (piece, more) = rest.split_at_mut((place.end - place.start) as usize);
            self.disk.memory().copy_out(place.start, piece);
            rest = more;
        }
        bytes
    }

    /// Writes it; all has come.
    pub(crate) fn commit(mut self) -> Result<(), BlocksError> {
        assert!(self.left_bytes() == 0, "a write is whole before it is written");
        for place in self.places(0, self.filled_bytes) {
            self.disk.memory().persist(place.start, place.end - place.start);
        }
        self.disk.hand_over(&[], self.offset, &mut self.cells)
    }

    /// Where `bytes` bytes of the write lie, those from `from` on.
    fn places(&self, from: usize, bytes: usize) -> Vec<Range<u64>> {
        let mut places: Vec<Range<u64>> = Vec::with_capacity(self.cells.len());
        for part in parts(from as u64, bytes) {
            let cell = self.disk.layout.cell_at(self.cells.cell(part.block as usize));
            let (at, bytes) = (cell + part.skip as u64, part.bytes as u64);
            match places.last_mut() {
                Some(last) if last.end == at => last.end += bytes,
                _ => places.push(at..at + bytes),
            }
        }
        places
    }
}

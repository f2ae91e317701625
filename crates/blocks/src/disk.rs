//! A disk whose blocks move: a write fills a cell that is nobody's, then swaps one word of the map.
//!
//! Promise: whoever dies, and wherever, each block is wholly what it was before or after the write
//! that was under way, and so is a write of several blocks as a whole; a read gives what one of the
//! writes gave, whole for each block, and waits for none.
//! Never: writes into a cell that the map names.
//!
//! The order that this rests on, edge by edge: a cell is whole before the map names it; the map has
//! given a cell up before it is spare; a cell is spare before it is filled anew. A reader that was
//! overtaken by all three finds the gate's count moved and reads again. Who cannot take back what
//! it has read holds the gates meanwhile (`lend`), so nothing is given up.

use std::{fmt, io};

use holdfast_io::BlocksError;

use crate::gates::Gates;
use crate::header::BLOCK_BYTES;
use crate::intent::{self, Entry};
use crate::layout::{Layout, WRITE_BYTES_MAX};
use crate::map::MapWords;
use crate::memory::{HELD, Memory};
use crate::orderings::STILL_HELD;
use crate::parts::{Part, blocks_of, parts};
use crate::spares::{Cells, Spares, Taken};
use crate::sync::{Mutex, lock};

/// Reads of a block before its writers are kept out for one.
const TRIES: usize = 3;

pub(crate) const ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// A disk in some memory.
#[derive(Debug)]
pub(crate) struct Disk<M> {
    memory: M,
    pub(crate) layout: Layout,
    seed: u32,
    map: MapWords,
    pub(crate) gates: Gates,
    pub(crate) spares: Spares,
    /// Held by who has an intent written down. Gates are taken inside it, never around it.
    intent: Mutex<()>,
}

/// What is wrong with a disk's intent or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiskFault {
    /// What a write of several blocks was about to do cannot be read.
    Intent,
    /// The map word of the block was never written by a disk.
    Word {
        /// The block, counted from 0.
        block: u64,
    },
    /// The block's cell lies behind the last one.
    OutOfRange {
        /// The block, counted from 0.
        block: u64,
    },
    /// Two blocks have one cell.
    Shared {
        /// The first of them, counted from 0.
        block: u64,
        /// The other.
        other: u64,
    },
}

impl<M: Memory> Disk<M> {
    /// Takes up the disk in `memory`: carries out what a dead writer was about to do, looks at the
    /// whole map, and finds the spare cells.
    pub(crate) fn open(memory: M, layout: Layout, seed: u32) -> Result<Disk<M>, DiskFault> {
        let map = MapWords::of(seed);
        finish_intent(&memory, &layout, map, seed)?;
        let used = used_cells(&memory, &layout, map)?;
        memory.set_counter(HELD, u64::from(used.len()));
        let (gates, spares) = (Gates::new(), Spares::all_but(used));
        Ok(Disk { memory, layout, seed, map, gates, spares, intent: Mutex::new(()) })
    }

    /// The memory it is in.
    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// Bytes of the disk.
    #[inline]
    pub(crate) fn size_bytes(&self) -> u64 {
        self.layout.size_bytes()
    }

    /// Fills `into` with the bytes at `offset`.
    pub(crate) fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError> {
        self.check_range(offset, into.len() as u64)?;
        let mut rest = into;
        for part in parts(offset, rest.len()) {
            let (piece, more) = rest.split_at_mut(part.bytes);
            self.read_part(part, piece)?;
            rest = more;
        }
        Ok(())
    }

    /// Writes all of `from`; [`WRITE_BYTES_MAX`] at a time wholly or not at all.
    pub(crate) fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError> {
        self.check_range(offset, from.len() as u64)?;
        let pieces = (offset..).step_by(WRITE_BYTES_MAX).zip(from.chunks(WRITE_BYTES_MAX));
        pieces.into_iter().try_for_each(|(offset, piece)| self.write_piece(piece, offset))
    }

    /// Makes a range read as zeros; whole blocks give their cells back.
    pub(crate) fn zero(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.check_range(offset, bytes)?;
        let (block_bytes, end) = (BLOCK_BYTES as u64, offset + bytes);
        let first = offset.next_multiple_of(block_bytes).min(end);
        let last = (end - end % block_bytes).max(first);
        self.write(&ZEROS[..(first - offset) as usize], offset)?;
        self.empty(first / block_bytes, last / block_bytes)?;
        self.write(&ZEROS[..(end - last) as usize], last)
    }

    /// Runs `job` while no map word changes.
    pub(crate) fn while_still<T>(&self, job: impl FnOnce() -> T) -> T {
        let held = (lock(&self.intent), self.gates.hold_all());
        if !STILL_HELD {
            drop(held);
        }
        job()
    }

    pub(crate) fn check_range(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.size_bytes());
        if inside { Ok(()) } else { Err(BlocksError::OutOfRange) }
    }

    #[inline]
    fn read_part(&self, part: Part, into: &mut [u8]) -> Result<(), BlocksError> {
        let gate = self.gates.of(part.block);
        for _ in 0..TRIES {
            let seen = gate.swaps();
            self.copy_part(part, into)?;
            if gate.is_still(seen) {
                return Ok(());
            }
        }
        let _held = gate.hold();
        self.copy_part(part, into)
    }

    /// Copies what the block's cell has, whoever may be writing there by now.
    #[inline]
    fn copy_part(&self, part: Part, into: &mut [u8]) -> Result<(), BlocksError> {
        match self.cell_of(part.block)? {
            None => into.fill(0),
            Some(cell) => {
                let at = self.layout.cell_at(cell) + part.skip as u64;
                self.memory.copy_out(at, into);
            }
        }
        Ok(())
    }

    /// The cell that the map names for a block.
    #[inline]
    pub(crate) fn cell_of(&self, block: u64) -> Result<Option<u32>, BlocksError> {
        let word = self.memory.load(self.layout.word_at(block));
        let cell = self.map.decode(block, word).map_err(|_| DiskFault::Word { block })?;
        if cell.is_some_and(|cell| cell >= self.layout.cells) {
            return Err(DiskFault::OutOfRange { block }.into());
        }
        Ok(cell)
    }

    /// Writes what is wholly there or not at all.
    fn write_piece(&self, piece: &[u8], offset: u64) -> Result<(), BlocksError> {
        let mut cells = self.spares.take(blocks_of(offset, piece.len()));
        self.fill_whole(piece, offset, &cells);
        self.hand_over(piece, offset, &mut cells)
    }

    /// Fills the cells of those blocks of which all is written, as many at once as lie in a row.
    fn fill_whole(&self, piece: &[u8], offset: u64, cells: &Taken<'_>) {
        let mut whole = parts(offset, piece.len()).enumerate().filter(|(_, part)| part.is_whole());
        let Some((mut index, first)) = whole.next() else { return };
        let mut rest = &piece[(first.offset() - offset) as usize..];
        let mut count = 1 + whole.count();
        while count != 0 {
            let row = cells.in_a_row(index, count);
            let (bytes, more) = rest.split_at(row * BLOCK_BYTES);
            self.fill(cells.cell(index), bytes);
            (rest, index, count) = (more, index + row, count - row);
        }
    }

    /// Gives the cells to the blocks that the piece touches, once what is written into parts of
    /// blocks is joined with the rest of them; of a piece of none, all is in the cells.
    pub(crate) fn hand_over(
        &self,
        piece: &[u8],
        offset: u64,
        cells: &mut Taken<'_>,
    ) -> Result<(), BlocksError> {
        let first = offset / BLOCK_BYTES as u64;
        let blocks = || first..first + cells.len() as u64;
        let intended = (cells.len() > 1).then(|| lock(&self.intent));
        let _held = self.gates.hold(first, cells.len());
        let old = blocks().map(|block| self.cell_of(block)).collect::<Result<Vec<_>, _>>()?;
        for (index, part) in parts(offset, piece.len()).enumerate().filter(|it| !it.1.is_whole()) {
            let bytes = &piece[(part.offset() - offset) as usize..][..part.bytes];
            self.merge(part, bytes, old[index], cells.cell(index));
        }
        if intended.is_some() {
            let entry = |(index, block)| Entry { block: block as u32, cell: cells.cell(index) };
            let entries: Vec<_> = blocks().enumerate().map(entry).collect();
            intent::note(&self.memory, self.seed, &entries);
        }
        for (index, block) in blocks().enumerate() {
            self.swap(block, old[index], Some(cells.cell(index)));
        }
        if intended.is_some() {
            intent::withdraw(&self.memory);
        }
        self.gates.count_swaps(first, cells.len());
        old.into_iter().enumerate().for_each(|(index, old)| cells.hand_over(index, old));
        Ok(())
    }

    /// Fills a cell with part of a block, and with what the block has in its old cell beside it.
    fn merge(&self, part: Part, bytes: &[u8], old: Option<u32>, cell: u32) {
        let mut block = ZEROS;
        if let Some(old) = old {
            self.memory.copy_out(self.layout.cell_at(old), &mut block);
        }
        block[part.range()].copy_from_slice(bytes);
        self.fill(cell, &block);
    }

    /// Fills a cell that is nobody's.
    #[inline]
    fn fill(&self, cell: u32, block: &[u8]) {
        let at = self.layout.cell_at(cell);
        self.memory.copy_in(at, block);
        self.memory.persist(at, block.len() as u64);
    }

    /// Makes the map name another cell for a block. The caller holds the block's gate, and counts
    /// the swap there before the old cell is spare.
    #[inline]
    fn swap(&self, block: u64, old: Option<u32>, new: Option<u32>) {
        let at = self.layout.word_at(block);
        self.memory.store(at, self.map.encode(block, new));
        self.memory.persist(at, 8);
        if old.is_some() != new.is_some() {
            self.memory.count(HELD, if new.is_some() { 1 } else { -1 });
        }
    }

    /// Takes the cells of the blocks from `first` on, and before `end`.
    fn empty(&self, first: u64, end: u64) -> Result<(), BlocksError> {
        let mut next = first;
        while next < end {
            let row = Gates::row(next, end);
            next = row.end;
            let gate = self.gates.of(row.start);
            let held = gate.hold();
            let cells = row.clone().map(|block| self.cell_of(block));
            let cells = cells.collect::<Result<Vec<_>, _>>()?;
            for (block, old) in row.zip(&cells).filter(|(_, old)| old.is_some()) {
                self.swap(block, *old, None);
            }
            gate.count_swap();
            drop(held);
            self.spares.give(cells.into_iter().flatten());
        }
        Ok(())
    }
}

/// Does what a dead writer of several blocks was about to do. Done twice, it is as done once.
fn finish_intent<M: Memory>(
    memory: &M,
    layout: &Layout,
    map: MapWords,
    seed: u32,
) -> Result<(), DiskFault> {
    let entries = intent::found(memory, seed).map_err(|_| DiskFault::Intent)?;
    for Entry { block, cell } in &entries {
        if u64::from(*block) >= layout.blocks || *cell >= layout.cells {
            return Err(DiskFault::Intent);
        }
        let (block, at) = (u64::from(*block), layout.word_at(u64::from(*block)));
        memory.store(at, map.encode(block, Some(*cell)));
        memory.persist(at, 8);
    }
    if !entries.is_empty() {
        intent::withdraw(memory);
    }
    Ok(())
}

/// The cells that the map names, if it names each once.
fn used_cells<M: Memory>(memory: &M, layout: &Layout, map: MapWords) -> Result<Cells, DiskFault> {
    let cell_of = |block| map.decode(block, memory.load(layout.word_at(block)));
    let mut used = Cells::none_of(layout.cells);
    for block in 0..layout.blocks {
        let Some(cell) = cell_of(block).map_err(|_| DiskFault::Word { block })? else { continue };
        if !used.knows(cell) {
            return Err(DiskFault::OutOfRange { block });
        }
        if !used.insert(cell) {
            let first = (0..block).find(|other| cell_of(*other) == Ok(Some(cell)));
            let first = first.expect("a cell that is used was named before");
            return Err(DiskFault::Shared { block: first, other: block });
        }
    }
    Ok(used)
}

impl fmt::Display for DiskFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Intent => out.write_str("what a write was about to do to the map is damaged"),
            Self::Word { block } => write!(out, "the map word of block {block} is damaged"),
            Self::OutOfRange { block } => {
                write!(out, "the map says that block {block} lies behind the last cell")
            }
            Self::Shared { block, other } => {
                write!(out, "the map says that blocks {block} and {other} lie in one cell")
            }
        }
    }
}

impl std::error::Error for DiskFault {}

impl From<DiskFault> for BlocksError {
    fn from(fault: DiskFault) -> BlocksError {
        BlocksError::Failed(io::Error::new(io::ErrorKind::InvalidData, fault))
    }
}

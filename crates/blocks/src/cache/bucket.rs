//! What a process knows of one bucket of cells: who changes its blocks, and which were wanted
//! lately.
//!
//! Promise: whoever offers a block learns whether it may have been changed since it was read.
//! Never: is needed after the process: the entries are in the region.

use super::layout::WAYS;

/// Begins knowing nothing.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// Changes that were begun and that ended, of any block of the bucket.
    changes: u64,
    active: Vec<Active>,
    /// A bit for each cell that was wanted since the hand last came by.
    wanted: u16,
    hand: u8,
}

/// A change that was begun and has not ended.
#[derive(Clone, Copy, Debug)]
struct Active {
    blocks: Blocks,
    /// Whether no other change of the same blocks was under way at any time of this one.
    is_alone: bool,
}

/// What is being changed of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocks {
    One(u64),
    Any,
}

impl Blocks {
    fn meets(self, other: Blocks) -> bool {
        self == other || self == Blocks::Any || other == Blocks::Any
    }
}

const _: () = assert!(WAYS == u16::BITS);

impl Bucket {
    /// How often a change was begun or ended.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn begin(&mut self, blocks: Blocks) {
        self.changes += 1;
        let mut is_alone = true;
        for other in self.active.iter_mut().filter(|other| other.blocks.meets(blocks)) {
            other.is_alone = false;
            is_alone = false;
        }
        self.active.push(Active { blocks, is_alone });
    }

    pub(super) fn end(&mut self, blocks: Blocks) {
        self.changes += 1;
        let at = self.active.iter().position(|active| active.blocks == blocks);
        self.active.swap_remove(at.expect("a change ends once"));
    }

    /// Whether somebody is changing the block.
    pub(super) fn is_changing(&self, block: u64) -> bool {
        self.active.iter().any(|active| active.blocks.meets(Blocks::One(block)))
    }

    /// Whether who is changing the block knows what it comes to: nobody else was at it.
    pub(super) fn is_changed_alone(&self, block: u64) -> bool {
        let mut of_block =
            self.active.iter().filter(|active| active.blocks.meets(Blocks::One(block)));
        of_block.all(|active| active.is_alone)
    }

    /// Notes that a cell was wanted.
    pub(super) fn touch(&mut self, way: u32) {
        self.wanted |= 1 << way;
    }

    /// Notes that a cell has another block, which was wanted once and has to show more.
    pub(super) fn settle(&mut self, way: u32) {
        self.wanted &= !(1 << way);
    }

    /// The next cell that was not wanted since the hand last came by (CLOCK: F. J. Corbato, "A
    /// Paging Experiment with the Multics System", 1968).
    pub(super) fn victim(&mut self) -> u32 {
        loop {
            let way = u32::from(self.hand);
            self.hand = (self.hand + 1) % WAYS as u8;
            if self.wanted >> way & 1 == 0 {
                return way;
            }
            self.settle(way);
        }
    }
}

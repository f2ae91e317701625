//! Which blocks of the store are free.
//!
//! Promise: a block is given out once until it is given back; those with low numbers first, so that
//! what is written one after another mostly lies in a row.
//! Never: is written down. What no index names is free, and is found so when the store is opened.

/// The blocks that are in use.
#[derive(Debug)]
pub(crate) struct Space {
    used: Vec<u64>,
    blocks: u32,
    free: u32,
    /// No block below it is free.
    next: u32,
}

impl Space {
    /// So many blocks, all but the first `reserved` of them free.
    pub(crate) fn new(blocks: u32, reserved: u32) -> Space {
        let used = vec![0; blocks.div_ceil(64) as usize];
        let mut space = Space { used, blocks, free: blocks, next: 0 };
        (0..reserved.min(blocks)).for_each(|block| assert!(space.claim(block), "it is free"));
        space
    }

    /// How many are free.
    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    /// How many there are.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Says that a block is in use; false if it is none, or is in use already.
    pub(crate) fn claim(&mut self, block: u32) -> bool {
        if block >= self.blocks || self.is_used(block) {
            return false;
        }
        self.used[block as usize / 64] |= 1 << (block % 64);
        self.free -= 1;
        true
    }

    /// A free block.
    pub(crate) fn take(&mut self) -> Option<u32> {
        let block = (self.next..self.blocks).find(|block| !self.is_used(*block))?;
        self.next = block + 1;
        assert!(self.claim(block), "it was found free");
        Some(block)
    }

    /// Gives a block back.
    pub(crate) fn give(&mut self, block: u32) {
        assert!(self.is_used(block), "what is given back was taken");
        self.used[block as usize / 64] &= !(1 << (block % 64));
        self.free += 1;
        self.next = self.next.min(block);
    }

    fn is_used(&self, block: u32) -> bool {
        self.used[block as usize / 64] >> (block % 64) & 1 == 1
    }
}

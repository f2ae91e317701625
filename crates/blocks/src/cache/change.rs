//! A change of the home, from before its first byte to after its last.
//!
//! Promise: while it lives nobody finds its blocks, and nothing that was read before or meanwhile
//! is kept; at its end it may leave the new content, if nobody else was at the same blocks.
//! Never: changes the home itself.

use std::ops::Range;

use super::bucket::Blocks;
use super::{Block, Cache, entry};
use crate::header::BLOCK_BYTES;
use crate::memory::Memory;
use crate::sync::lock;

/// Blocks that somebody changes at home.
#[derive(Debug)]
pub(crate) struct Change<'a, M: Memory> {
    cache: &'a Cache<M>,
    blocks: Range<u64>,
    /// What was found of the blocks that are changed in part, the first and the last one.
    edges: Vec<(u64, Box<Block>)>,
}

impl<M: Memory> Cache<M> {
    /// Forgets blocks that are about to be changed at home.
    pub(crate) fn change(&self, blocks: Range<u64>) -> Change<'_, M> {
        self.change_with_edges(blocks, &[])
    }

    /// Forgets blocks that are about to be changed at home, some of them in part: what is known of
    /// those goes with the change.
    pub(crate) fn change_with_edges(&self, blocks: Range<u64>, partial: &[u64]) -> Change<'_, M> {
        let mut change = Change { cache: self, blocks, edges: Vec::new() };
        let mut edges = Vec::new();
        change.each_bucket(|bucket, of| {
            let mut held = lock(&self.buckets[bucket as usize]);
            held.begin(of);
            // Only of what begins here: others may still come before the rest.
            let begun = |block: &&u64| match of {
                Blocks::One(one) => **block == one,
                Blocks::Any => self.layout.bucket_of(**block) == bucket,
            };
            let known = |block: &u64| Some((*block, self.held(*block)?));
            edges.extend(partial.iter().filter(begun).filter_map(known));
            self.forget_in(bucket, &change.blocks);
        });
        change.edges = edges;
        change
    }

    /// A block of a bucket that the caller holds, if the cache has it whole.
    fn held(&self, block: u64) -> Option<Box<Block>> {
        let (cell, entry) = self.cell_of(block)?;
        let mut content: Box<Block> = Box::new([0; BLOCK_BYTES]);
        self.memory.copy_out(self.layout.cell_at(cell), &mut *content);
        (entry.check == self.check(block, entry.epoch, &*content)).then_some(content)
    }

    /// Empties the cells of a bucket, which the caller holds, that have one of these blocks.
    fn forget_in(&self, bucket: u32, blocks: &Range<u64>) {
        for cell in self.layout.cells_of(bucket) {
            let found = entry(&self.memory, &self.layout, cell);
            if found.is_some_and(|entry| blocks.contains(&entry.block)) {
                self.forget(cell);
            }
        }
    }
}

impl<M: Memory> Change<'_, M> {
    /// Keeps what a block of the change has become.
    pub(crate) fn fill(&self, block: u64, content: &[u8]) {
        let mut bucket = self.cache.bucket(block);
        if bucket.is_changed_alone(block) {
            self.cache.place(&mut bucket, block, content);
        }
    }

    /// Keeps what a block that was changed in part has become, if what it was is known.
    pub(crate) fn patch(&mut self, block: u64, skip: usize, bytes: &[u8]) {
        let Some(at) = self.edges.iter().position(|(known, _)| *known == block) else { return };
        let (_, mut content) = self.edges.swap_remove(at);
        content[skip..skip + bytes.len()].copy_from_slice(bytes);
        self.fill(block, &*content);
    }

    /// Does something with the bucket of each block; if there are fewer buckets, once with each.
    fn each_bucket(&self, mut with: impl FnMut(u32, Blocks)) {
        let (layout, blocks) = (&self.cache.layout, self.blocks.clone());
        if blocks.end - blocks.start < u64::from(layout.buckets) {
            blocks.for_each(|block| with(layout.bucket_of(block), Blocks::One(block)));
        } else {
            (0..layout.buckets).for_each(|bucket| with(bucket, Blocks::Any));
        }
    }
}

impl<M: Memory> Drop for Change<'_, M> {
    fn drop(&mut self) {
        self.each_bucket(|bucket, of| lock(&self.cache.buckets[bucket as usize]).end(of));
    }
}

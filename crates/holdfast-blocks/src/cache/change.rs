//! A change of the home, from before its first byte to after its last.
//!
//! Promise: while it lives nobody finds its blocks, and nothing that was read before or meanwhile
//! is kept; at its end it may leave the new content, if nobody else was at the same blocks.
//! Never: changes the home itself.

use std::ops::Range;

use super::bucket::Blocks;
use super::{Cache, entry};
use crate::memory::Memory;
use crate::sync::lock;

/// Blocks that somebody changes at home.
#[derive(Debug)]
pub(crate) struct Change<'a, M: Memory> {
    cache: &'a Cache<M>,
    blocks: Range<u64>,
}

impl<M: Memory> Cache<M> {
    /// Forgets blocks that are about to be changed at home.
    pub(crate) fn change(&self, blocks: Range<u64>) -> Change<'_, M> {
        let change = Change { cache: self, blocks };
        change.each_bucket(|bucket, of| {
            let mut held = lock(&self.buckets[bucket as usize]);
            held.begin(of);
            self.forget_in(bucket, &change.blocks);
        });
        change
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

    /// Does something with the bucket of each block; if there are fewer buckets, once with each.
    fn each_bucket(&self, with: impl Fn(u32, Blocks)) {
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

//! Blocks of a slower home, kept where they outlive the process.
//!
//! Promise: a block that is found is what the home has, whoever died and wherever; what cannot be
//! known to be so is not found. Nothing that a cache holds is needed: all of it is at home too.
//! Never: reads or writes the home. Whoever changes it says so before and after
//! ([`Cache::change`]); what is read from it is offered with the miss ([`Cache::fill`]).
//!
//! A block may lie in any of the sixteen cells of one bucket. An entry for each cell says which
//! block it has, and has a check over block, epoch and content that each reader compares. So all
//! that an attach has to rebuild is a count.
//!
//! Where the memory outlives the system, the home may lose what no sync covered, and the cache must
//! not know better: an entry has the number of syncs at its filling (its epoch), and an attach
//! drops those that no later sync covered.
//!
//! Byte table: FORMAT.md, "Cache".

mod bucket;
mod change;
mod home;
mod layout;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use holdfast_io::checksum;

use crate::header::BLOCK_BYTES;
use crate::memory::{HELD, Memory};
use crate::sync::{Mutex, MutexGuard, lock};

use bucket::Bucket;
pub(crate) use home::Home;
pub(crate) use layout::{BUCKETS_MAX, CacheLayout, VERSION, WAYS};

/// Counters for whoever looks on, beside [`HELD`].
pub(crate) const HITS: usize = 1;
pub(crate) const MISSES: usize = 2;
/// Entries whose check was wrong; each is a miss too.
pub(crate) const DAMAGED: usize = 3;

/// One block's bytes.
pub(crate) type Block = [u8; BLOCK_BYTES];

/// A cache in some memory.
#[derive(Debug)]
pub(crate) struct Cache<M> {
    memory: M,
    layout: CacheLayout,
    seed: u32,
    buckets: Box<[Mutex<Bucket>]>,
    /// Syncs of the home that were begun, in a circle.
    epoch: AtomicU32,
    /// Bucket when a sync failed: what the home has lost then, no later sync covers.
    has_failed: AtomicBool,
    syncing: Mutex<()>,
}

/// That a block was missed, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Miss {
    changes: u64,
}

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    block: u64,
    epoch: u32,
    check: u32,
}

impl<M: Memory> Cache<M> {
    /// Takes up the cache in `memory`, which outlives the system or not.
    pub(crate) fn open(
        memory: M,
        layout: CacheLayout,
        seed: u32,
        outlives_system: bool,
    ) -> Cache<M> {
        let synced = layout::synced(&memory, seed);
        let is_right = |entry: &Entry| {
            let is_synced = synced.is_some_and(|synced| is_covered(entry.epoch, synced));
            is_synced || !outlives_system
        };
        let mut held = 0;
        for cell in 0..layout.cells() {
            let Some(entry) = entry(&memory, &layout, cell) else { continue };
            if layout.bucket_of(entry.block) == cell / WAYS && is_right(&entry) {
                held += 1;
            } else {
                forget(&memory, &layout, cell);
            }
        }
        memory.set_counter(HELD, held);
        Cache {
            buckets: (0..layout.buckets).map(|_| Mutex::new(Bucket::default())).collect(),
            epoch: AtomicU32::new(synced.unwrap_or(0).wrapping_add(1)),
            has_failed: AtomicBool::new(false),
            syncing: Mutex::new(()),
            memory,
            layout,
            seed,
        }
    }

    /// The memory it is in.
    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// Blocks that there is room for.
    pub(crate) fn blocks_max(&self) -> u64 {
        u64::from(self.layout.cells())
    }

    /// Copies a block out; if it is missing, says when, for whoever reads it at home.
    pub(crate) fn look(&self, block: u64, into: &mut Block) -> Result<(), Miss> {
        let mut bucket = self.bucket(block);
        let miss = Miss { changes: bucket.changes() };
        let Some((cell, entry)) = self.cell_of(block) else {
            drop(bucket);
            self.memory.count(MISSES, 1);
            return Err(miss);
        };
        self.memory.copy_out(self.layout.cell_at(cell), into);
        bucket.touch(cell % WAYS);
        drop(bucket);
        if entry.check == self.check(block, entry.epoch, into) {
            self.memory.count(HITS, 1);
            return Ok(());
        }
        self.drop_damaged(block, entry);
        Err(miss)
    }

    /// Keeps a block that was missed and then read at home, unless somebody changed it meanwhile.
    pub(crate) fn fill(&self, miss: Miss, block: u64, content: &[u8]) {
        let mut bucket = self.bucket(block);
        if bucket.changes() == miss.changes && !bucket.is_changing(block) {
            self.place(&mut bucket, block, content);
        }
    }

    /// Says that the home is about to be synced: what is noted of that by [`Cache::synced`].
    pub(crate) fn begin_sync(&self) -> u32 {
        self.epoch.fetch_add(1, Ordering::Relaxed)
    }

    /// Says that the sync returned.
    pub(crate) fn synced(&self, epoch: u32) {
        let _turn = lock(&self.syncing);
        let before = layout::synced(&self.memory, self.seed);
        let is_news = before.is_none_or(|before| !is_covered(epoch, before));
        if is_news && !self.has_failed.load(Ordering::Relaxed) {
            layout::note_synced(&self.memory, self.seed, epoch);
        }
    }

    /// Says that a sync failed: from here on none tells what the home has.
    pub(crate) fn sync_failed(&self) {
        let _turn = lock(&self.syncing);
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Forgets everything.
    pub(crate) fn empty(&self) {
        drop(self.change(0..u64::MAX));
    }

    /// The bucket of a block. Who holds it is alone with the bucket's entries and cells.
    fn bucket(&self, block: u64) -> MutexGuard<'_, Bucket> {
        lock(&self.buckets[self.layout.bucket_of(block) as usize])
    }

    /// The cell that has a block, in the bucket that the caller holds.
    fn cell_of(&self, block: u64) -> Option<(u32, Entry)> {
        let entries = self.layout.cells_of(self.layout.bucket_of(block));
        let mut entries = entries.map(|cell| (cell, entry(&self.memory, &self.layout, cell)));
        entries.find_map(|(cell, found)| {
            found.filter(|entry| entry.block == block).map(|entry| (cell, entry))
        })
    }

    /// Forgets an entry whose check was wrong, if it is still that one.
    fn drop_damaged(&self, block: u64, seen: Entry) {
        let _held = self.bucket(block);
        if let Some((cell, entry)) = self.cell_of(block)
            && entry == seen
        {
            self.forget(cell);
            self.memory.count(DAMAGED, 1);
        }
        self.memory.count(MISSES, 1);
    }

    /// Puts a block into its bucket, in place of one that nobody wanted lately if need be.
    fn place(&self, bucket: &mut Bucket, block: u64, content: &[u8]) {
        let cells = self.layout.cells_of(self.layout.bucket_of(block));
        let is_empty = |cell: &u32| entry(&self.memory, &self.layout, *cell).is_none();
        let old = self.cell_of(block).map(|(cell, _)| cell);
        let cell = old.or_else(|| cells.clone().find(is_empty));
        let cell = cell.unwrap_or_else(|| cells.start + bucket.victim());
        self.forget(cell);
        bucket.settle(cell % WAYS);
        let epoch = self.epoch.load(Ordering::Relaxed);
        let check = self.check(block, epoch, content);
        let at = self.layout.cell_at(cell);
        self.memory.copy_in(at, content);
        self.memory.persist(at, content.len() as u64);
        note(&self.memory, &self.layout, cell, Entry { block, epoch, check });
        self.memory.count(HELD, 1);
    }

    /// Empties a cell of a bucket that the caller holds.
    fn forget(&self, cell: u32) {
        if entry(&self.memory, &self.layout, cell).is_some() {
            forget(&self.memory, &self.layout, cell);
            self.memory.count(HELD, -1);
        }
    }

    /// What makes another block, another epoch and another cache none of these.
    fn check(&self, block: u64, epoch: u32, content: &[u8]) -> u32 {
        let mut head = [0; 12];
        head[..8].copy_from_slice(&block.to_le_bytes());
        head[8..].copy_from_slice(&epoch.to_le_bytes());
        checksum::crc32c(checksum::crc32c(self.seed, &head), content)
    }
}

/// Whether a sync with this number covers what was filled in an epoch. Numbers go in a circle; an
/// entry that is half a circle old counts as new, and is dropped, which only costs a read.
fn is_covered(epoch: u32, synced: u32) -> bool {
    synced.wrapping_sub(epoch) < 1 << 31
}

/// What a cell holds, if anything.
fn entry<M: Memory>(memory: &M, layout: &CacheLayout, cell: u32) -> Option<Entry> {
    let at = layout.entry_at(cell);
    let block = memory.load(at).checked_sub(1)?;
    let word = memory.load(at + 8);
    Some(Entry { block, epoch: word as u32, check: (word >> 32) as u32 })
}

/// Says what a cell holds, after it does.
fn note<M: Memory>(memory: &M, layout: &CacheLayout, cell: u32, entry: Entry) {
    let at = layout.entry_at(cell);
    memory.store(at + 8, u64::from(entry.epoch) | u64::from(entry.check) << 32);
    memory.persist(at + 8, 8);
    memory.store(at, entry.block + 1);
    memory.persist(at, 8);
}

/// Says that a cell holds nothing, before it is filled anew or the home is changed.
fn forget<M: Memory>(memory: &M, layout: &CacheLayout, cell: u32) {
    memory.store(layout.entry_at(cell), 0);
    memory.persist(layout.entry_at(cell), 8);
}

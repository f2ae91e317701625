//! What a store is told when it is opened.
//!
//! Promise: every size is checked once, at the door.
//! Never: changes while a store is open.

use std::path::PathBuf;

use holdfast_memory::Medium;
use holdfast_pages::{CleaningOrder, Compression, Keep, PAGE_BYTES, PagesConfig};

use crate::pool::page_table::PAGES_MAX;

/// Fewer frames than this cannot hold the latches of one operation and of those beside it.
const FRAMES_MIN: u64 = 16;

/// How a store is kept.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of pages that are kept in memory: 16 pages at least, and not more than a store can
    /// have. Each takes memory when something first comes into it.
    pub pool_bytes: u64,
    /// Where its log is.
    pub log: LogPlace,
    /// How often the store notes how far it is, in ms, so that a restart has less to look at.
    pub checkpoint_ms: Option<u32>,
    /// How many neighbouring pages are read and written at once by whoever brings the page file up
    /// to date.
    pub segment_pages: u64,
    /// How many bytes of records may wait until the page file has them; a few wait for some
    /// seconds at most.
    pub clean_every_bytes: u64,
    /// Which pages are brought up to date then, and which wait.
    pub cleaning: CleaningOrder,
    /// How much of the past is kept in the archive: all of it, unless it is told otherwise. What is
    /// not is left out when runs are merged, and by [`crate::Store::trim`] at once.
    pub keep: Keep,
    /// How the archive is compressed from now on: what it has is read as it was written. It is not,
    /// unless it is told otherwise.
    pub compression: Compression,
    /// Most bytes of what keys were that are kept for snapshots, large values in pages of their own
    /// included. Beyond that the oldest snapshot ends: it is told
    /// [`crate::TransactionError::SnapshotTooOld`].
    pub snapshot_bytes: u64,
    /// Most bytes that one transaction has in memory of what it would have to undo, and that each
    /// checkpoint has of it. Beyond that it lies in pages of the store, so a transaction may
    /// change as much as the disk has room for. Half of what the log takes at once counts if it is
    /// less.
    pub undo_bytes: u64,
    /// Who does what has to be done beside transactions.
    pub services: Services,
    /// How the store notes how far it is.
    pub checkpoints: Checkpoints,
    /// Where whoever brings the page file up to date takes pages from.
    pub cleaner: Cleaner,
    /// Which page leaves memory when another one needs its room.
    pub eviction: Eviction,
    /// What an open does before it returns.
    pub restart: Restart,
}

/// How a store notes how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpoints {
    /// From its records alone, without a latch or a lock.
    Decoupled,
    /// The same, but by reading the log again. For comparison only.
    Reread,
    /// By asking every frame and every lock. For comparison only: a restart makes no use of it.
    Classical,
}

/// Where whoever brings the page file up to date takes pages from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaner {
    /// From the archive, without a latch, wherever the pages are.
    Decoupled,
    /// From their frames, each with its latch. For comparison only.
    Classical,
}

/// Which page leaves memory when another one needs its room. None is written for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The first that was not used of late.
    Unused,
    /// Of some that were not used of late, one whose image in the page file has all its records, so
    /// that it need not get them if it comes back. For comparison only.
    CleanFirst,
}

/// What an open of a store does before it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// Nothing that can be done when somebody needs it.
    Instant,
    /// It brings every page up to date and undoes every loser. For comparison only.
    Classical,
}

/// Where the log of a store is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LogPlace {
    /// In the store's own directory, with a ring in this process.
    Embedded {
        /// What the ring is made of. What a process leaves in a medium that outlives it is found by
        /// the next.
        memory: Medium,
        /// Bytes of the ring, a power of two, 2 to 2048 segments. A restart reads up to half as
        /// much.
        ring_bytes: u64,
        /// Bytes of a segment file, a power of two, at most half the ring. Fixed when the store is
        /// made.
        segment_bytes: u64,
    },
    /// In the server, which has its ring: what is stable outlives this process, and the server's.
    /// The server's configuration gives the log one client at a time.
    Served {
        /// Where the server listens.
        socket: PathBuf,
        /// What the server calls the log. It is this store's alone, from the first open on.
        name: String,
    },
}

/// Who does what has to be done beside transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Services {
    /// Two threads of the store.
    Threads,
    /// Whoever calls [`crate::Store::step`].
    Stepped,
}

impl Default for LogPlace {
    fn default() -> LogPlace {
        LogPlace::Embedded { memory: Medium::Private, ring_bytes: 32 << 20, segment_bytes: 4 << 20 }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            pool_bytes: 64 << 20,
            log: LogPlace::default(),
            checkpoint_ms: Some(100),
            segment_pages: 64,
            clean_every_bytes: 32 << 20,
            cleaning: CleaningOrder::EveryPage,
            keep: Keep::All,
            compression: Compression::None,
            snapshot_bytes: 256 << 20,
            undo_bytes: 1 << 20,
            services: Services::Threads,
            checkpoints: Checkpoints::Decoupled,
            cleaner: Cleaner::Decoupled,
            eviction: Eviction::Unused,
            restart: Restart::Instant,
        }
    }
}

impl Config {
    /// How many pages are kept in memory.
    pub(crate) fn frames(&self) -> usize {
        // Pages beyond those that a store can have would never be there.
        let frames = (self.pool_bytes / PAGE_BYTES as u64).clamp(FRAMES_MIN, PAGES_MAX);
        usize::try_from(frames).unwrap_or(usize::MAX)
    }

    /// Most bytes that one transaction has to undo from memory, if so many are the longest group of
    /// records: those changes are told in one when they come back there.
    pub(crate) fn undo_bytes_max(&self, group_bytes_max: u64) -> usize {
        usize::try_from(self.undo_bytes.min(group_bytes_max / 2)).unwrap_or(usize::MAX)
    }

    /// With windows of the log's.
    pub(crate) fn pages(&self, window_bytes: u64) -> PagesConfig {
        let checkpoints = match self.checkpoints {
            Checkpoints::Reread => holdfast_pages::Checkpoints::Reread,
            Checkpoints::Decoupled | Checkpoints::Classical => {
                holdfast_pages::Checkpoints::Followed
            }
        };
        PagesConfig {
            window_bytes,
            segment_pages: self.segment_pages.max(1),
            clean_every_bytes: self.clean_every_bytes,
            cleaning: self.cleaning,
            keep: self.keep,
            compression: self.compression,
            checkpoints,
        }
    }
}

//! When a flush is done on a disk with one head.
//!
//! Promise: a flush of something ends at a turn of the platter after its arrival, plus the time
//! its bytes take; flushes wait for each other; a flush of nothing is free.
//! Never: seeks, caches, or looks at what is written. That is fair for a log, which is written in
//! one place, and too kind to a data base, whose files are far apart.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use holdfast_io::Clock;

use super::Counts;

/// The platter and its head.
pub(super) struct Platter {
    turn_ns: u64,
    bytes_per_s: u64,
    clock: Arc<dyn Clock>,
    head: Mutex<()>,
    flushes: AtomicU64,
    flushed_bytes: AtomicU64,
}

impl Platter {
    /// `None` if either speed is zero.
    pub(super) fn new(
        turns_per_minute: u32,
        megabytes_per_s: u32,
        clock: Arc<dyn Clock>,
    ) -> Option<Self> {
        let turn_ns = 60_000_000_000_u64.checked_div(u64::from(turns_per_minute))?;
        let bytes_per_s = u64::from(megabytes_per_s) * 1_000_000;
        let (flushes, flushed_bytes) = Default::default();
        (bytes_per_s > 0).then_some(Self {
            turn_ns,
            bytes_per_s,
            clock,
            head: Mutex::new(()),
            flushes,
            flushed_bytes,
        })
    }

    /// Flushes what `dirty_bytes` counts, and takes it off the count when it is done: whoever
    /// syncs the same thing meanwhile finds it dirty, waits for the head, and then has nothing
    /// left to do.
    pub(super) fn flush(&self, dirty_bytes: &AtomicU64) {
        if dirty_bytes.load(Relaxed) == 0 {
            return;
        }
        let _head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = dirty_bytes.load(Relaxed);
        if bytes == 0 {
            return;
        }
        let now_ns = self.clock.monotonic_ns();
        let done_ns = self.done_ns(now_ns, bytes);
        thread::sleep(Duration::from_nanos(done_ns - now_ns));
        dirty_bytes.fetch_sub(bytes, Relaxed);
        self.flushes.fetch_add(1, Relaxed);
        self.flushed_bytes.fetch_add(bytes, Relaxed);
    }

    /// When a flush of `bytes` is done that reaches the head at `now_ns`.
    pub(super) fn done_ns(&self, now_ns: u64, bytes: u64) -> u64 {
        let next_turn_ns = (now_ns / self.turn_ns + 1) * self.turn_ns;
        let transfer_ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_s);
        next_turn_ns + transfer_ns as u64
    }

    /// What it did so far.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            flushes: self.flushes.load(Relaxed),
            flushed_bytes: self.flushed_bytes.load(Relaxed),
        }
    }
}

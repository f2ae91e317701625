//! The three marks of a region: how far its ring is written, safe on the device, given back.
//!
//! Promise: `released <= durable <= tail <= released + ring_bytes` at every instant, whoever dies
//! between two stores; the bytes below a tail that was read are whole.
//! Never: touches the bytes. Positions are absolute and never reused; the ring masks them.

use std::sync::atomic::Ordering;

use crate::atomics::AtomicU64;
use crate::orderings::{RELEASED_SEE, RELEASED_STORE, TAIL_PUBLISH, TAIL_SEE};

/// A copy of the marks, all in bytes of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Everything below is done with; its ring space may be written again.
    pub released: u64,
    /// Everything below is on the device.
    pub durable: u64,
    /// Everything below is published in the ring, which makes it stable.
    pub tail: u64,
}

impl Marks {
    /// The first mark that is out of order for a ring of `ring_bytes`, by name.
    #[must_use]
    pub fn fault(&self, ring_bytes: u64) -> Option<&'static str> {
        if self.durable < self.released {
            Some("durable")
        } else if self.tail < self.durable || self.tail - self.released > ring_bytes {
            Some("tail")
        } else if self.released.checked_add(ring_bytes).is_none() {
            Some("released")
        } else {
            None
        }
    }
}

/// A field that shares its cache line with none before it: writers of one mark do not slow
/// readers of another.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Line<T>(pub(crate) T);

/// The marks as they lie in the control page.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct MarkWords {
    released: Line<AtomicU64>,
    durable: Line<AtomicU64>,
    tail: Line<AtomicU64>,
}

impl MarkWords {
    /// Where each mark lies, in bytes from the first.
    #[cfg(not(model))]
    pub(crate) const OFFSETS: [(&str, usize); 3] = [
        ("released", std::mem::offset_of!(MarkWords, released)),
        ("durable", std::mem::offset_of!(MarkWords, durable)),
        ("tail", std::mem::offset_of!(MarkWords, tail)),
    ];

    /// The marks now. Read in the order in which they follow each other, so that the copy is in
    /// order too, although each may be older than the next.
    #[inline]
    pub(crate) fn read(&self) -> Marks {
        let released = self.released();
        // EDGE durable-to-home: the device has what the mark covers before it can be seen.
        let durable = self.durable.0.load(Ordering::Acquire);
        Marks { released, durable, tail: self.tail() }
    }

    /// The tail: the bytes below it may be read.
    #[inline]
    pub(crate) fn tail(&self) -> u64 {
        // EDGE filled-to-read: having seen the tail, the bytes below it are whole.
        self.tail.0.load(TAIL_SEE)
    }

    /// Everything below may be overwritten.
    #[inline]
    pub(crate) fn released(&self) -> u64 {
        // EDGE read-to-reuse: having seen the mark, nobody reads below it any more.
        self.released.0.load(RELEASED_SEE)
    }

    /// Moves the tail: the one store that makes an append visible.
    #[inline]
    pub(crate) fn publish(&self, tail: u64) {
        // EDGE filled-to-read: the bytes are whole before the tail covers them.
        self.tail.0.store(tail, TAIL_PUBLISH);
    }

    /// [`MarkWords::publish`], unless the tail is not where the caller left it.
    #[inline]
    pub(crate) fn publish_from(&self, tail: u64, to: u64) -> bool {
        // EDGE filled-to-read: the bytes are whole before the tail covers them.
        self.tail.0.compare_exchange(tail, to, TAIL_PUBLISH, Ordering::Relaxed).is_ok()
    }

    /// Moves `durable` up to `lsn`; lower values change nothing.
    pub(crate) fn set_durable(&self, lsn: u64) {
        // EDGE durable-to-home: the sync that covers these bytes has returned.
        self.durable.0.fetch_max(lsn, Ordering::Release);
    }

    /// Moves `released` up to `lsn`; lower values change nothing.
    pub(crate) fn set_released(&self, lsn: u64) {
        // EDGE read-to-reuse: the readers of the bytes below have finished.
        self.released.0.fetch_max(lsn, RELEASED_STORE);
    }

    /// Sets all three to `lsn`. Not one step: the control page's reset note covers it.
    pub(crate) fn set_all(&self, lsn: u64) {
        for mark in [&self.released, &self.durable, &self.tail] {
            // EDGE filled-to-read: an empty ring holds no bytes that anybody could read early.
            mark.0.store(lsn, Ordering::Release);
        }
    }
}

#[cfg(model)]
impl MarkWords {
    /// Marks outside any region, all zero, for the models.
    pub(crate) fn new() -> MarkWords {
        let zero = || Line(AtomicU64::new(0));
        MarkWords { released: zero(), durable: zero(), tail: zero() }
    }
}

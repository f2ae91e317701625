//! Whether the home has room for what is acknowledged.
//!
//! A change is acknowledged long before it reaches the home, so the question "is the disk full"
//! must be asked at once: later nobody listens.
//!
//! Promise: what is admitted fits the home together with everything admitted before it and not
//! applied yet, as far as the free space reported by the home tells.
//! Never: refuses while plenty is free.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_io::{Clock, Files};

use crate::tree::Errno;

/// How long an answer of the home counts while much is free.
const ANSWER_NS: u64 = 100_000_000;
/// Kept free for directories and the home's own needs.
const MARGIN_BYTES: u64 = 4 << 20;

/// The last answer of the home.
pub(crate) struct SpaceGate {
    free_bytes: AtomicU64,
    asked_at_ns: AtomicU64,
}

impl SpaceGate {
    pub(crate) fn new() -> SpaceGate {
        SpaceGate { free_bytes: AtomicU64::new(0), asked_at_ns: AtomicU64::new(0) }
    }

    /// `ENOSPC` if `bytes` more do not fit behind `waiting_bytes` that are not applied yet.
    pub(crate) fn admit(
        &self,
        home: &dyn Files,
        clock: &dyn Clock,
        bytes: u64,
        waiting_bytes: u64,
    ) -> Result<(), Errno> {
        let needed = bytes.saturating_add(waiting_bytes).saturating_add(MARGIN_BYTES);
        let now_ns = clock.monotonic_ns();
        let fresh = now_ns.saturating_sub(self.asked_at_ns.load(Ordering::Relaxed)) < ANSWER_NS;
        if fresh && self.free_bytes.load(Ordering::Relaxed) >= needed {
            return Ok(());
        }
        let free_bytes = home.space()?.available_bytes;
        self.free_bytes.store(free_bytes, Ordering::Relaxed);
        self.asked_at_ns.store(now_ns, Ordering::Relaxed);
        if free_bytes >= needed { Ok(()) } else { Err(Errno::NOSPC) }
    }
}

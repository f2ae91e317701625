//! A clock moved by hand.
//!
//! Promise: stands still until a test moves it; clones show the same time.
//! Never: steps its monotonic time back.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::Clock;

/// A clock moved by hand. It starts in November 2023, UTC, with one second since boot.
#[derive(Clone, Debug)]
pub struct FakeClock {
    // Each number stands alone, so no order between the two has to be kept.
    utc_ns: Arc<AtomicI64>,
    monotonic_ns: Arc<AtomicU64>,
}

impl Default for FakeClock {
    fn default() -> FakeClock {
        FakeClock {
            utc_ns: Arc::new(AtomicI64::new(1_700_000_000_000_000_000)),
            monotonic_ns: Arc::new(AtomicU64::new(1_000_000_000)),
        }
    }
}

impl FakeClock {
    /// Lets `ns` nanoseconds pass on both.
    pub fn advance_ns(&self, ns: u64) {
        self.utc_ns.fetch_add(ns as i64, Ordering::Relaxed);
        self.monotonic_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Steps the wall clock, forward or back, as an operator or NTP may.
    pub fn set_utc_ns(&self, utc_ns: i64) {
        self.utc_ns.store(utc_ns, Ordering::Relaxed);
    }
}

impl Clock for FakeClock {
    fn utc_ns(&self) -> i64 {
        self.utc_ns.load(Ordering::Relaxed)
    }

    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(Ordering::Relaxed)
    }
}

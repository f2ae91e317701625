//! The kernel's clocks.
//!
//! Promise: `CLOCK_REALTIME_COARSE` (which costs a quarter of the exact one) and
//! `CLOCK_MONOTONIC`, in nanoseconds.
//! Never: fails.

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::Clock;

/// The kernel's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealClock;

impl Clock for RealClock {
    fn utc_ns(&self) -> i64 {
        nanoseconds(clock_gettime(ClockId::RealtimeCoarse))
    }

    fn monotonic_ns(&self) -> u64 {
        // The kernel counts up from zero at boot.
        nanoseconds(clock_gettime(ClockId::Monotonic)).unsigned_abs()
    }
}

/// One number, good until the year 2262.
fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

//! Time.
//!
//! Promise: the only two ways to ask what time it is.
//! Never: sleeps.

/// A source of time. Both are nanoseconds.
pub trait Clock: Send + Sync {
    /// Since 1970, UTC. May step, and lag by a tick of the kernel's clock, as file times do.
    fn utc_ns(&self) -> i64;
    /// Since some fixed moment. Never steps back.
    fn monotonic_ns(&self) -> u64;
}

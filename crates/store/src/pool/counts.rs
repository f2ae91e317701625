//! What pool and locks have done since a store was opened, in numbers.
//!
//! Promise: no counter goes back.
//! Never: counts; pool and locks do.

/// What became of looks for pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStatistics {
    /// Pages that there is room for.
    pub frames: u64,
    /// Looks for a page that was in memory.
    pub hits: u64,
    /// Pages that were brought into memory, because somebody looked for them.
    pub misses: u64,
    /// Pages that have left memory for others; none was written for that.
    pub evictions: u64,
}

/// What became of locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockStatistics {
    /// Keys and gaps that somebody has a lock on now, or waits for.
    pub held: u64,
    /// Locks that somebody waited for.
    pub waits: u64,
    /// Waits that could never have ended, and were refused.
    pub deadlocks: u64,
}

//! What blocks are kept in, as far as they need it.
//!
//! Promise: the logic above it is the same over an area of durable memory, over a recorded one that
//! can be cut off after any store, and over a model's.
//! Never: knows what lies where.

/// The counter of blocks that have a cell.
pub(crate) const HELD: usize = 0;

/// Memory that outlives who writes it. Offsets are in bytes; words lie at multiples of 8.
pub(crate) trait Memory: Send + Sync {
    /// The word at `at`, with [`crate::orderings::MAP_SEE`].
    fn load(&self, at: u64) -> u64;

    /// Replaces the word at `at` in one step, with [`crate::orderings::MAP_NAME`].
    fn store(&self, at: u64, value: u64);

    /// Copies bytes out. Those that another thread writes meanwhile may be old or new.
    fn copy_out(&self, at: u64, into: &mut [u8]);

    /// Copies bytes in, in several steps.
    fn copy_in(&self, at: u64, from: &[u8]);

    /// Makes these bytes as safe as they can be, before any later store.
    fn persist(&self, at: u64, bytes: u64);

    /// Sets a counter for whoever looks on.
    fn set_counter(&self, counter: usize, value: u64);

    /// Changes a counter for whoever looks on.
    fn count(&self, counter: usize, change: i64);
}

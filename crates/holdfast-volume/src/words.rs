//! The volume's counters in the region's shared words.
//!
//! Promise: `holdfast status` reads them while the front end lives, and after it died. One of them,
//! [`WINDOW_END`], tells the next process what the last one was at.
//! Never: counts anything twice.

use std::sync::atomic::Ordering;

use holdfast_memory::Region;

/// How often a change had to wait for room.
pub const STALLS: usize = 40;
/// The longest wait for room, nanoseconds.
pub const LONGEST_STALL_NS: usize = 41;
/// The error number of the home's last failure; 0 for none.
pub const HOME_ERRNO: usize = 42;
/// Windows applied to the home.
pub const WINDOWS: usize = 43;
/// Bytes applied to the home.
pub const APPLIED_BYTES: usize = 44;
/// Changes acknowledged.
pub const CHANGES: usize = 45;
/// Where the window ends, in the log, that the cleaner began last.
pub const WINDOW_END: usize = 46;

/// The word's value.
pub(crate) fn get(region: &Region, word: usize) -> u64 {
    region.word(word).load(Ordering::Relaxed)
}

/// Adds to a counter.
pub(crate) fn count(region: &Region, word: usize, more: u64) {
    region.word(word).fetch_add(more, Ordering::Relaxed);
}

/// Keeps the largest value.
pub(crate) fn raise(region: &Region, word: usize, value: u64) {
    region.word(word).fetch_max(value, Ordering::Relaxed);
}

/// Stores a state.
pub(crate) fn set(region: &Region, word: usize, value: u64) {
    region.word(word).store(value, Ordering::Relaxed);
}

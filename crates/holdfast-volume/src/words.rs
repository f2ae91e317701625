//! The volume's counters in the region's shared words.
//!
//! Promise: `holdfast status` reads them while the front end lives, and after it died.
//! Never: carries anything that recovery needs.

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

pub(crate) fn count(region: &Region, word: usize, more: u64) {
    region.word(word).fetch_add(more, Ordering::Relaxed);
}

pub(crate) fn set(region: &Region, word: usize, value: u64) {
    region.word(word).store(value, Ordering::Relaxed);
}

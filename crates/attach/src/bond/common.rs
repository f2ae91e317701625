//! What the files of a bond have in common.
//!
//! Promise: a file is missing, unreadable, or what it says is whole.
//! Never: reads one.

use rustix::process::{Signal, getpid, kill_process};
use std::sync::atomic::{AtomicU32, Ordering};

/// Version of what both files say.
pub(super) const FORMAT: u32 = 1;

/// A file beside the log, as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note<T> {
    /// There is none: an earlier version made the log.
    Missing,
    /// It is damaged, or of another version.
    Unreadable,
    /// It is whole.
    Found(T),
}

impl<T> Note<T> {
    /// What it says, if it is whole.
    pub fn found(&self) -> Option<&T> {
        match self {
            Note::Found(found) => Some(found),
            _ => None,
        }
    }
}

/// A place in the work on a bond where a test may have the process die; the test says at which,
/// counted from 1. A build for users listens to nobody.
pub(super) fn may_die_here() {
    static PLACES: AtomicU32 = AtomicU32::new(0);
    if !cfg!(debug_assertions) {
        return;
    }
    let last = std::env::var("HOLDFAST_TEST_DIES_AT").ok().and_then(|text| text.parse().ok());
    if last == Some(PLACES.fetch_add(1, Ordering::Relaxed) + 1) {
        let _ends_here = kill_process(getpid(), Signal::KILL);
    }
}

/// An identity as people see it.
pub fn hex(identity: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(identity))
}

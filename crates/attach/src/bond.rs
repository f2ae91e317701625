//! What ties a log to its home and to its memory.
//!
//! Promise: two small files beside the log say which home it has and in which memory its newest
//! bytes were; each is the old one or the new one, whole, whatever happens while it is replaced.
//! Never: applies anything, or decides what a log means.
//!
//! Where to look: `badge` is what a home wears, `home` compares it with the log's file about it,
//! `region` does the same for memory, `lent` has what a home wore before a run, `note` keeps these
//! files, `boot` says which run of the system this is, `certain` what its clock is worth.

mod badge;
mod boot;
mod certain;
mod home;
pub mod lent;
mod note;
mod region;
#[cfg(test)]
mod tests;

pub use badge::{Badge, Wearer};
pub use boot::now_ns;
pub use certain::UNNOTED_NS;
pub use home::{Bond, choose, has_note, has_nothing_more, is_complete, note_complete};
pub use region::{Loss, RegionNote};

use rustix::process::{Signal, getpid, kill_process};
use std::sync::atomic::{AtomicU32, Ordering};

/// Version of what both files say.
const FORMAT: u32 = 1;

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
fn may_die_here() {
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

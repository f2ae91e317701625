//! The process that opened something.
//!
//! A fork copies what a process has in memory, not the threads that saw to it, and shares the files
//! that it has open. Two processes that go on from one state would write two histories into one
//! file, so only the one that opened it does.
//!
//! Promise: a process that was forked is told from the one that opened something, also where both
//! have one number, in namespaces of their own; for the price of a load.
//! Never: asks the system once it is known, where the system can empty memory when it forks.

use std::io;
use std::mem::forget;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

#[allow(unsafe_code)]
mod raw;

/// What whoever tries is told.
const FORKED: &str = "this process was forked from the one that opened it, which alone changes it";

/// The number of this process among its forebears, in memory that a fork empties. `None` where the
/// system has no such memory.
static NUMBER: OnceLock<Option<&AtomicU64>> = OnceLock::new();

/// The highest number that this process or a forebear has had.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The process that opened something, which has this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opener(u64);

impl Opener {
    /// This process.
    #[must_use]
    pub fn this_process() -> Opener {
        match NUMBER.get_or_init(|| raw::emptied_word().ok()) {
            Some(number) => Opener(numbered(number)),
            None => Opener(std::process::id().into()),
        }
    }

    /// Whether this process is the one, and not a child that it has forked.
    #[must_use]
    #[inline]
    pub fn is_here(self) -> bool {
        match NUMBER.get() {
            Some(Some(number)) => number.load(Ordering::Relaxed) == self.0,
            _ => self == Opener::this_process(),
        }
    }

    /// Refuses a child.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`], which says why.
    #[inline]
    pub fn check(self) -> io::Result<()> {
        if self.is_here() { Ok(()) } else { Err(forked()) }
    }

    /// Waits for the end of a thread that this process has started. A child has no such thread: it
    /// forgets it.
    pub fn join(self, thread: JoinHandle<()>) {
        if self.is_here() {
            let _panicked = thread.join();
        } else {
            forget(thread);
        }
    }
}

impl Default for Opener {
    fn default() -> Opener {
        Opener::this_process()
    }
}

#[cold]
fn forked() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, FORKED)
}

/// The number in a word; a new one, if a fork has emptied it. No forebear has had that.
fn numbered(word: &AtomicU64) -> u64 {
    let known = word.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let new = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    match word.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => new,
        // Another thread was faster.
        Err(known) => known,
    }
}

//! The cleaner, which one thread has at a time.
//!
//! Promise: who wants it is known to who has it, and does not wait behind a pause.
//! Never: cleans.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use super::cleaner::Cleaner;

/// The cleaner, and how many want it.
pub(crate) struct InTurn {
    cleaner: Mutex<Cleaner>,
    wanted: AtomicU64,
    /// The thread that cleans in the background.
    thread: Mutex<Option<Thread>>,
}

impl InTurn {
    pub(crate) fn new(cleaner: Cleaner) -> InTurn {
        let (wanted, thread) = (AtomicU64::new(0), Mutex::new(None));
        InTurn { cleaner: Mutex::new(cleaner), wanted, thread }
    }

    /// As soon as the window that is under way is done.
    pub(crate) fn now(&self) -> MutexGuard<'_, Cleaner> {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let cleaner = self.at_leisure();
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        cleaner
    }

    /// Whenever it is free.
    pub(crate) fn at_leisure(&self) -> MutexGuard<'_, Cleaner> {
        self.cleaner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_wanted(&self) -> bool {
        // Who has it looks again and again.
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// This thread cleans from now on.
    pub(crate) fn is_done_by(&self, thread: Thread) {
        *self.thread() = Some(thread);
    }

    /// Wakes the thread that cleans.
    pub(crate) fn wake(&self) {
        if let Some(thread) = &*self.thread() {
            thread.unpark();
        }
    }

    fn thread(&self) -> MutexGuard<'_, Option<Thread>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Where a thread rests until somebody has work for it.
//!
//! Promise: work that is there before it is woken for is not slept through.
//! Never: is needed for more than time: who rests looks for itself, too, later.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// Where a thread rests until there is something to do.
#[derive(Debug, Default)]
pub(crate) struct Rest(Mutex<Option<Thread>>);

impl Rest {
    /// Rests for so long, or until somebody wakes it; not if it `has_work`, which is looked for
    /// after everybody knows whom to wake.
    pub(crate) fn rest(&self, pause: Duration, has_work: impl FnOnce() -> bool) {
        *self.lock() = Some(thread::current());
        if !has_work() {
            thread::park_timeout(pause);
        }
        *self.lock() = None;
    }

    /// Wakes who rests, once. Whatever makes the work comes before.
    pub(crate) fn wake(&self) {
        if let Some(thread) = self.lock().take() {
            thread.unpark();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Thread>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

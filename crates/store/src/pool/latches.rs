//! How many latches this thread has, where assertions are compiled in.
//!
//! Promise: whoever is about to wait for a lock, for the log or for its device while he has a latch
//! is stopped by a panic in a test, instead of by everybody else's wait in production.
//! Never: costs anything in a release build; knows which latches.

use std::cell::Cell;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// One latch, as long as this lives.
#[derive(Debug)]
pub(crate) struct Counted(());

impl Counted {
    #[inline]
    pub(crate) fn new() -> Counted {
        if cfg!(debug_assertions) {
            HELD.set(HELD.get() + 1);
        }
        Counted(())
    }
}

impl Drop for Counted {
    #[inline]
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            HELD.set(HELD.get() - 1);
        }
    }
}

/// Says that this thread may wait now.
///
/// # Panics
/// With assertions, if it has a latch.
#[inline]
pub(crate) fn may_wait() {
    if cfg!(debug_assertions) {
        assert_eq!(HELD.get(), 0, "nobody waits while he has a latch");
    }
}

#[cfg(test)]
mod tests;

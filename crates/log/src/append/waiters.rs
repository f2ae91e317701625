//! Threads that sleep until a position is durable.
//!
//! Promise: each thread is called by itself, when its position is durable or when it is to see to
//! that, so nobody wakes in vain; a call that comes before the sleep is not lost. Of a crowd each
//! thread that wakes calls others, so that nobody has to call all of them.
//! Never: knows a lock. Whoever has the queue has the lock that it lies under.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use holdfast_core::Lsn;

/// Who sleeps, by ascending position.
#[derive(Default)]
pub(crate) struct Waiters(VecDeque<(Lsn, Arc<Waiter>)>);

/// One sleeping thread.
pub(crate) struct Waiter {
    thread: Thread,
    called: AtomicBool,
    /// Whom it calls when it wakes.
    calls: OnceLock<[Option<Arc<Waiter>>; 2]>,
}

impl Waiters {
    /// Remembers this thread until `upto` is durable.
    pub(crate) fn add(&mut self, upto: Lsn) -> Arc<Waiter> {
        let waiter = Arc::new(Waiter {
            thread: std::thread::current(),
            called: AtomicBool::new(false),
            calls: OnceLock::new(),
        });
        // Threads come nearly in the order of their positions, so the place is near the end.
        let behind = self.0.iter().rev().take_while(|(known, _)| *known > upto).count();
        self.0.insert(self.0.len() - behind, (upto, Arc::clone(&waiter)));
        waiter
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Takes those whose positions are durable.
    pub(crate) fn take_upto(&mut self, durable: Lsn) -> Vec<Arc<Waiter>> {
        let count = self.0.partition_point(|(upto, _)| *upto <= durable);
        self.0.drain(..count).map(|(_, waiter)| waiter).collect()
    }

    /// Takes the first that waits for something at or above `assigned`, which nobody writes yet.
    pub(crate) fn take_above(&mut self, assigned: Lsn) -> Option<Arc<Waiter>> {
        let at = self.0.partition_point(|(upto, _)| *upto <= assigned);
        self.0.remove(at).map(|(_, waiter)| waiter)
    }
}

/// Wakes all of a crowd: two of them here, and each that wakes wakes two more.
pub(crate) fn call_on(crowd: &[Arc<Waiter>]) {
    for (at, waiter) in crowd.iter().enumerate() {
        waiter.calls.get_or_init(|| [2 * at + 2, 2 * at + 3].map(|it| crowd.get(it).cloned()));
    }
    crowd.iter().take(2).for_each(|waiter| waiter.call());
}

impl Waiter {
    /// Wakes the thread, now or when it goes to sleep.
    pub(crate) fn call(&self) {
        // EDGE called-to-look: what the thread was called for is done before it looks.
        self.called.store(true, Ordering::Release);
        self.thread.unpark();
    }

    /// Sleeps until called, and calls on.
    pub(crate) fn sleep(&self) {
        // EDGE called-to-look: having been called, what was done is seen.
        while !self.called.load(Ordering::Acquire) {
            std::thread::park();
        }
        // Set before the call, if at all.
        self.calls.get().into_iter().flatten().flatten().for_each(|waiter| waiter.call());
    }
}

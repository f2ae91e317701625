//! Wakes a thread that waits for something to be published.
//!
//! Promise: whoever finds nothing and sleeps is woken by the next publication.
//! Never: costs a publisher a system call while nobody sleeps. It lives with its sleepers: a
//! region's in the serving process, a queue's in the page that the server made.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::atomics::{AtomicU32, fence};
use crate::futex::{self, Scope};
use crate::orderings::BELL_FENCED;

/// A doorbell for any number of sleepers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Bell {
    /// Those who announced themselves.
    sleepers: AtomicU32,
    /// Counts rings, so that a ring between a sleeper's look and its sleep is not missed.
    rings: AtomicU32,
}

impl Bell {
    pub(crate) fn new() -> Bell {
        Bell { sleepers: AtomicU32::new(0), rings: AtomicU32::new(0) }
    }

    /// Sleeps until the bell rings or `timeout` passes, unless `found` is already true.
    pub(crate) fn wait_unless(
        &self,
        found: impl Fn() -> bool,
        timeout: Option<Duration>,
        scope: Scope,
    ) {
        let sleeper = self.announce();
        full_fence();
        sleeper.sleep_unless(found, timeout, scope);
    }

    /// Counts as a sleeper from now on, and notices every later ring.
    pub(crate) fn announce(&self) -> Sleeper<'_> {
        let rings = self.rings.load(Ordering::Relaxed);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        Sleeper { bell: self, rings }
    }

    /// Whether anybody is announced. Without a fence or a lock that sleepers announce themselves
    /// under, as a moment ago.
    #[inline]
    pub(crate) fn has_sleepers(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) != 0
    }

    /// Wakes every sleeper. To be called after the store that a sleeper looks for.
    pub(crate) fn ring(&self, scope: Scope) {
        full_fence();
        if self.has_sleepers() {
            self.ring_sleepers(scope);
        }
    }

    /// [`Bell::ring`], once it is known that there are sleepers.
    pub(crate) fn ring_sleepers(&self, scope: Scope) {
        // EDGE ring-to-look: what was published comes before the ring.
        self.rings.fetch_add(1, Ordering::Release);
        futex::wake(&self.rings, i32::MAX.unsigned_abs(), scope);
    }
}

/// One who is about to sleep, or sleeps.
pub(crate) struct Sleeper<'a> {
    bell: &'a Bell,
    rings: u32,
}

impl Sleeper<'_> {
    /// Sleeps until the bell rings or `timeout` passes, unless it rang since the announcement or
    /// `found` is already true.
    pub(crate) fn sleep_unless(
        self,
        found: impl Fn() -> bool,
        timeout: Option<Duration>,
        scope: Scope,
    ) {
        if !found() {
            futex::wait_while(&self.bell.rings, self.rings, timeout, scope);
            // EDGE ring-to-look: having been woken, what was published is seen.
            fence(Ordering::Acquire);
        }
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.bell.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Of two full fences one comes first: the sleeper's, and the publisher sees the sleeper; or the
/// publisher's, and the sleeper sees what was published (Dekker's exclusion).
fn full_fence() {
    if BELL_FENCED {
        fence(Ordering::SeqCst);
    }
}

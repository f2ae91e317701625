//! Sleep until a word changes.
//!
//! Promise: [`wait_while`] returns at once if the word does not hold the value, and after a
//! [`wake`] of it. It may return for no reason; callers look again.
//! Never: works across processes: one process serves a region, so its sleepers are its own
//! threads, and the private futex is the cheaper one.

use std::time::Duration;

use crate::atomics::AtomicU32;

/// Sleeps while `word` holds `value`, at most for `timeout` (for ever when there is none).
#[cfg(not(loom))]
pub(crate) fn wait_while(word: &AtomicU32, value: u32, timeout: Option<Duration>) {
    use rustix::thread::futex;
    // A timeout too long for the kernel is as good as none.
    let limit = timeout.and_then(|wait| rustix::fs::Timespec::try_from(wait).ok());
    // Every outcome means the same to the caller: look at the word again.
    let _ = futex::wait(word, futex::Flags::PRIVATE, value, limit.as_ref());
}

/// Wakes up to `sleepers` threads that sleep on `word`.
#[cfg(not(loom))]
pub(crate) fn wake(word: &AtomicU32, sleepers: u32) {
    use rustix::thread::futex;
    let woken = futex::wake(word, futex::Flags::PRIVATE, sleepers);
    debug_assert!(woken.is_ok(), "waking on an aligned word of ours cannot fail");
}

/// The model's sleep: other threads run until the word changes. A lost wake-up never ends, and
/// loom reports it.
#[cfg(loom)]
pub(crate) fn wait_while(word: &AtomicU32, value: u32, _timeout: Option<Duration>) {
    use std::sync::atomic::Ordering;
    while word.load(Ordering::Relaxed) == value {
        loom::thread::yield_now();
    }
}

/// The model's sleepers wake by themselves.
#[cfg(loom)]
pub(crate) fn wake(_word: &AtomicU32, _sleepers: u32) {}

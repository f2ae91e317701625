//! Sleep until a word changes.
//!
//! Promise: [`wait_while`] returns at once if the word does not hold the value, and after a
//! [`wake`] of it. It may return for no reason; callers look again.
//! Never: decides who may sleep where. Within a process the private futex is the cheaper one; only
//! what is mapped by several needs the other.

use std::time::Duration;

use crate::atomics::AtomicU32;

/// Who may sleep on a word.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope {
    /// Threads of this process.
    Process,
    /// Threads of every process that maps the word.
    Machine,
}

/// Sleeps while `word` holds `value`, at most for `timeout` (for ever when there is none).
#[cfg(not(model))]
pub(crate) fn wait_while(word: &AtomicU32, value: u32, timeout: Option<Duration>, scope: Scope) {
    use rustix::thread::futex;
    // A timeout too long for the kernel is as good as none.
    let limit = timeout.and_then(|wait| rustix::fs::Timespec::try_from(wait).ok());
    // Every outcome means the same to the caller: look at the word again.
    let _ = futex::wait(word, flags(scope), value, limit.as_ref());
}

/// Wakes up to `sleepers` threads that sleep on `word`.
#[cfg(not(model))]
pub(crate) fn wake(word: &AtomicU32, sleepers: u32, scope: Scope) {
    use rustix::thread::futex;
    let woken = futex::wake(word, flags(scope), sleepers);
    debug_assert!(woken.is_ok(), "waking on an aligned word of ours cannot fail");
}

/// The model's sleep: other threads run until the word changes. A lost wake-up never ends, and
/// the model reports it.
#[cfg(model)]
pub(crate) fn wait_while(word: &AtomicU32, value: u32, _timeout: Option<Duration>, _scope: Scope) {
    use std::sync::atomic::Ordering;
    while word.load(Ordering::Relaxed) == value {
        crate::atomics::yield_now();
    }
}

/// The model's sleepers wake by themselves.
#[cfg(model)]
pub(crate) fn wake(_word: &AtomicU32, _sleepers: u32, _scope: Scope) {}

#[cfg(not(model))]
fn flags(scope: Scope) -> rustix::thread::futex::Flags {
    use rustix::thread::futex::Flags;
    match scope {
        Scope::Process => Flags::PRIVATE,
        Scope::Machine => Flags::empty(),
    }
}

/// Lets a moment pass between two looks at a word.
#[cfg(not(model))]
pub(crate) fn pause() {
    std::hint::spin_loop();
}

/// The model's moment: other threads run.
#[cfg(model)]
pub(crate) fn pause() {
    crate::atomics::yield_now();
}

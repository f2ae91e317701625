//! When to try again what somebody else has.
//!
//! Promise: a pure decision: the first attempt comes soon, the pauses grow up to a bound, and there
//! is always another attempt.
//! Never: looks at a clock.

use std::time::{Duration, Instant};

/// The first pause; it doubles from there.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause before an attempt that costs little and holds nobody up.
pub(crate) const OFTEN: Duration = Duration::from_secs(5);
/// The longest pause before one that ends a process which others use, or starts one in vain.
pub(crate) const SELDOM: Duration = Duration::from_secs(60);

/// The attempts at one thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    attempts: u32,
    due: Option<Instant>,
}

impl Pace {
    /// Whether the next attempt may be made.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| due <= now)
    }

    /// One more attempt is made; returns the pause before the next, `longest` at most.
    pub(crate) fn attempt(&mut self, now: Instant, longest: Duration) -> Duration {
        let pause = FIRST.saturating_mul(1 << self.attempts.min(16)).min(longest);
        self.attempts = self.attempts.saturating_add(1);
        self.due = Some(now + pause);
        pause
    }
}

#[cfg(test)]
mod tests;

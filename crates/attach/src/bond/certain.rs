//! Whether times tell what a volume did to its home before a restart of the system from what others
//! did after it.
//!
//! The moment of the restart is the clock's of today less the time that the system is up, and the
//! times of files are the clock's of then: a clock that was set in between shifts one against the
//! other.
//!
//! Promise: no moment where anything that is known says that the clock has stepped back.
//! Never: asks a clock.

/// Longest time for which what is done to a home is not noted. No system restarts faster.
pub const UNNOTED_NS: i64 = 750_000_000;

/// What is known of a restart, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moments {
    /// When it was, by the present clock; 0 if nobody knows.
    pub began_ns: i64,
    /// The latest noted moment of the runs before.
    pub noted_ns: i64,
    /// The present.
    pub now_ns: i64,
}

impl Moments {
    /// The moment behind which only others can have touched the home.
    pub(super) fn alone_since_ns(self) -> Option<i64> {
        let Moments { began_ns, noted_ns, now_ns } = self;
        let is_certain = noted_ns > 0 && noted_ns + UNNOTED_NS < began_ns && began_ns <= now_ns;
        is_certain.then_some(began_ns)
    }
}

#[cfg(test)]
mod tests;

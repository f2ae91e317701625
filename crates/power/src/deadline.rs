//! What is left until an answer is of no use any more.
//!
//! Promise: never less than nothing.
//! Never: waits.

use std::time::{Duration, Instant};

/// How long it is until then.
pub(crate) fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

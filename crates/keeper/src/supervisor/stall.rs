//! Since when programs wait for a process that serves.
//!
//! Promise: whoever asks hears of a wait that goes on, too.
//! Never: ends one by itself.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Since when programs wait, if they do.
#[derive(Debug, Default)]
pub(crate) struct Stall(Mutex<Option<Instant>>);

impl Stall {
    /// Nobody serves from now on, if somebody did until now.
    pub(crate) fn begin(&self) {
        self.lock().get_or_insert_with(Instant::now);
    }

    /// Somebody serves; returns for how long nobody did.
    pub(crate) fn end(&self) -> Duration {
        self.lock().take().map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// For how long nobody has served by now.
    pub(crate) fn so_far(&self) -> Duration {
        self.lock().map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

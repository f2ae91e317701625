//! One attachment of a volume, and everybody who waits for it.
//!
//! Promise: whoever wants a volume that is being attached hears how that ended, as the one does who
//! attaches it; for how long it goes on, and what it waits for, is told at any time.
//! Never: attaches anything.

use crate::supervisor::attached::Attached;
use crate::supervisor::progress::PROGRESS_EVERY;
use holdfast_config::problem::Outcome;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An attachment that goes on, or has ended.
#[derive(Debug)]
pub(crate) struct Attempt {
    begun: Instant,
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Debug)]
struct Now {
    waits_for: &'static str,
    outcome: Option<Outcome<Arc<Attached>>>,
}

impl Attempt {
    pub(crate) fn begin() -> Arc<Attempt> {
        let now = Now { waits_for: "the configuration", outcome: None };
        Arc::new(Attempt { begun: Instant::now(), now: now.into(), changed: Condvar::new() })
    }

    /// What it is about to wait for, for people.
    pub(crate) fn waits_for(&self, what: &'static str) {
        self.lock().waits_for = what;
    }

    /// Whether that is what it waited for last.
    pub(crate) fn waited_for(&self, what: &str) -> bool {
        self.lock().waits_for == what
    }

    /// Tells how it ended, everybody.
    pub(crate) fn end(&self, outcome: Outcome<Arc<Attached>>) {
        self.lock().outcome = Some(outcome);
        self.changed.notify_all();
    }

    /// Returns how it ended. `say` is called now and then.
    pub(crate) fn wait(&self, mut say: impl FnMut(&Attempt)) -> Outcome<Arc<Attached>> {
        loop {
            let goes_on = |now: &mut Now| now.outcome.is_none();
            let waited = self.changed.wait_timeout_while(self.lock(), PROGRESS_EVERY, goes_on);
            let (now, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if let Some(outcome) = now.outcome.clone() {
                return outcome;
            }
            drop(now);
            say(self);
        }
    }

    /// For how long it goes on, and for what it waits, for people.
    pub(crate) fn text(&self) -> String {
        let time: Duration = self.begun.elapsed();
        format!("attaching, for {} s: it waits for {}", time.as_secs(), self.lock().waits_for)
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;

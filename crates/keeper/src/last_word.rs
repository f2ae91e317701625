//! How the keeper has ended, for whoever waits for that.
//!
//! Promise: all who wait hear the same, and are given time to be told before the process ends.
//! Never: is waited for by anything that has to be done.

use holdfast_config::problem::Outcome;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is said once, at the end.
#[derive(Debug, Default)]
pub(crate) struct LastWord {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    word: Option<Outcome<()>>,
    /// So many have not passed it on yet.
    listeners: usize,
}

impl LastWord {
    /// Says it. The first one counts.
    pub(crate) fn say(&self, word: Outcome<()>) {
        self.lock().word.get_or_insert(word);
        self.changed.notify_all();
    }

    /// Waits for it, and passes it on.
    pub(crate) fn hear(&self, pass_on: impl FnOnce(Outcome<()>)) {
        let mut state = self.lock();
        state.listeners += 1;
        let waited = self.changed.wait_while(state, |state| state.word.is_none());
        let word = waited.unwrap_or_else(PoisonError::into_inner).word.clone();
        if let Some(word) = word {
            pass_on(word);
        }
        self.lock().listeners -= 1;
        self.changed.notify_all();
    }

    /// Waits until all who wait for it have passed it on, but no longer than this.
    pub(crate) fn wait_until_heard(&self, patience: Duration) {
        drop(self.changed.wait_timeout_while(self.lock(), patience, |it| it.listeners > 0));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

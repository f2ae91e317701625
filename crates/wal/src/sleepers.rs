//! Tasks that sleep until a position is durable.
//!
//! Promise: tasks are woken in the order of their positions, whichever threads find out that they
//! may; nobody who fell asleep before a look is forgotten by it.
//! Never: wakes with its lock held, because whoever is woken may come back at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;

use holdfast_log::Lsn;

/// Who is to be woken, by position.
#[derive(Default)]
pub(crate) struct Sleepers(Mutex<State>);

#[derive(Default)]
struct State {
    wakers: BTreeMap<Lsn, Vec<Waker>>,
    /// Whether a thread is waking: it looks again before it stops, so another need not.
    waking: bool,
    /// Whether everybody is to be woken, durable or not.
    everybody: bool,
}

impl Sleepers {
    /// Remembers a task. It has to look once more before it sleeps.
    pub(crate) fn add(&self, upto: Lsn, waker: &Waker) {
        let mut state = self.state();
        let wakers = state.wakers.entry(upto).or_default();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    /// Wakes whom the durable mark has passed; everybody, to look again, if it moves no more.
    pub(crate) fn wake(&self, everybody: bool, durable: impl Fn() -> Lsn) {
        let mut state = self.state();
        state.everybody |= everybody;
        if state.waking {
            return;
        }
        state.waking = true;
        loop {
            let woken = state.take(durable());
            if woken.is_empty() {
                state.waking = false;
                return;
            }
            drop(state);
            woken.into_values().flatten().for_each(Waker::wake);
            state = self.state();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics with the sleepers")
    }
}

impl State {
    /// Whose time has come.
    fn take(&mut self, durable: Lsn) -> BTreeMap<Lsn, Vec<Waker>> {
        let later = match std::mem::take(&mut self.everybody) {
            true => BTreeMap::new(),
            false => self.wakers.split_off(&durable.advance(1)),
        };
        std::mem::replace(&mut self.wakers, later)
    }
}

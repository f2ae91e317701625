//! Tasks that sleep until a position is durable.
//!
//! Promise: tasks are woken in the order of their positions, whichever threads find out that they
//! may; nobody who fell asleep before a look is forgotten by it.
//! Whoever waits has one waker here at most, and none once it has left.
//! Never: wakes or drops a waker with its lock held, because whoever is woken or dropped may come
//! back at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;

use holdfast_log::Lsn;

/// Who is to be woken, by position.
#[derive(Default)]
pub(crate) struct Sleepers(Mutex<State>);

/// The place among the sleepers of somebody who waits now and then. Its waker is there unless it
/// was woken since. It has to [`Sleepers::leave`].
#[derive(Debug, Default)]
pub(crate) struct Seat(Option<Key>);

/// A position, and a number that nobody else has.
type Key = (Lsn, u64);

#[derive(Default)]
struct State {
    wakers: BTreeMap<Key, Waker>,
    /// The number that nobody has had yet.
    next: u64,
    /// Whether a thread is waking: it looks again before it stops, so another need not.
    waking: bool,
    /// Whether everybody is to be woken, durable or not.
    everybody: bool,
}

impl Sleepers {
    /// Remembers a task, instead of the one that had its seat. It has to look once more before it
    /// sleeps.
    pub(crate) fn add(&self, seat: &mut Seat, upto: Lsn, waker: &Waker) {
        let waker = waker.clone();
        let mut state = self.state();
        let before = seat.0.take().and_then(|key| state.wakers.remove(&key));
        let key = (upto, state.next);
        state.next += 1;
        state.wakers.insert(key, waker);
        drop(state);
        seat.0 = Some(key);
        drop(before);
    }

    /// Forgets who has the seat.
    pub(crate) fn leave(&self, seat: &mut Seat) {
        let Some(key) = seat.0.take() else { return };
        let mut state = self.state();
        let gone = state.wakers.remove(&key);
        drop(state);
        drop(gone);
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
            woken.into_values().for_each(Waker::wake);
            state = self.state();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics with the sleepers")
    }
}

impl State {
    /// Whose time has come.
    fn take(&mut self, durable: Lsn) -> BTreeMap<Key, Waker> {
        let later = match std::mem::take(&mut self.everybody) {
            true => BTreeMap::new(),
            false => self.wakers.split_off(&(durable.advance(1), 0)),
        };
        std::mem::replace(&mut self.wakers, later)
    }
}

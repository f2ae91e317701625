//! Requests that have to wait, and with which no thread waits.
//!
//! Promise: what one user has asked for is handed over in the order in which it came, and of each
//! user as much as of any other; while some of a user's wait, his later changes do not overtake
//! them. A request that others wait for in the kernel goes before all of its user's.
//! Never: has more than [`BYTES_MAX`] of them. A user has at most as much of it as he leaves: with
//! what he asks beyond that a listener waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use holdfast_io::tree::Waits;

/// Bytes of requests that wait. The programs that wait for them have as much in their own memory.
const BYTES_MAX: usize = 128 << 20;
/// What a request takes beyond its bytes.
const REQUEST_BYTES: usize = 128;

/// The requests.
#[derive(Default)]
pub(super) struct Parked {
    queues: Mutex<Queues>,
    changed: Condvar,
}

#[derive(Default)]
struct Queues {
    /// Of each user who has any. They stay here until they are answered.
    of: BTreeMap<Lane, Queue>,
    bytes: usize,
    is_closed: bool,
}

/// Whose requests stand in one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lane {
    pub(super) user: Option<u32>,
    /// They keep others waiting, who have nothing to do with them.
    pub(super) holds_others: bool,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Arc<[u8]>>,
    bytes: usize,
}

impl Parked {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a request of this lane, of so many bytes, waits if it has to.
    pub(super) fn waits_of(&self, lane: Lane, bytes: usize) -> Waits {
        let queues = self.queues();
        if queues.of.is_empty() {
            return Waits::Never;
        }
        let own = queues.of.get(&lane);
        let bytes = bytes + REQUEST_BYTES;
        let after = own.map_or(0, |own| own.bytes) + bytes;
        let left = BYTES_MAX.saturating_sub(queues.bytes + bytes);
        match own {
            _ if after > left => Waits::InPlace,
            Some(_) => Waits::Behind,
            None => Waits::Never,
        }
    }

    /// Keeps a request.
    pub(super) fn park(&self, lane: Lane, message: &[u8]) {
        let mut queues = self.queues();
        let bytes = message.len() + REQUEST_BYTES;
        queues.bytes += bytes;
        let queue = queues.of.entry(lane).or_default();
        queue.bytes += bytes;
        queue.messages.push_back(message.into());
        self.changed.notify_one();
    }

    /// Nothing more comes, and nobody waits for an answer.
    pub(super) fn close(&self) {
        self.queues().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits until a request is kept. False once nothing more comes.
    pub(super) fn wait_for_some(&self) -> bool {
        let is_idle = |queues: &mut Queues| queues.of.is_empty() && !queues.is_closed;
        let queues = self.changed.wait_while(self.queues(), is_idle);
        !queues.unwrap_or_else(PoisonError::into_inner).is_closed
    }

    /// Hands over one request of each lane in turn, until the next of each has to wait on, which
    /// `answer` says by false.
    pub(super) fn hand_over(&self, answer: &mut dyn FnMut(Option<u32>, &[u8]) -> bool) {
        let mut lanes: Vec<Lane> = self.queues().of.keys().copied().collect();
        while !lanes.is_empty() {
            lanes.retain(|lane| {
                let Some(message) = self.first_of(*lane) else { return false };
                let is_answered = answer(lane.user, &message);
                is_answered && self.answered(*lane)
            });
        }
    }

    fn first_of(&self, lane: Lane) -> Option<Arc<[u8]>> {
        self.queues().of.get(&lane)?.messages.front().cloned()
    }

    /// The first request of a lane is answered. False if it was the last.
    fn answered(&self, lane: Lane) -> bool {
        let mut queues = self.queues();
        let queue = queues.of.get_mut(&lane).expect("nobody else takes any away");
        let message = queue.messages.pop_front().expect("nobody else takes any away");
        let bytes = message.len() + REQUEST_BYTES;
        queue.bytes -= bytes;
        let is_empty = queue.messages.is_empty();
        queues.bytes -= bytes;
        if is_empty {
            queues.of.remove(&lane);
        }
        !is_empty
    }
}

#[cfg(test)]
mod tests;

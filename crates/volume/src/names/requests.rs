//! Requests that must not be carried out twice, noted beside the log before their change is logged.
//!
//! The kernel sends a request again whose front end died before it answered, and keeps locked until
//! the answer what the request is about. So nobody else changes that between the two attempts: what
//! the first one found, noted before its change was logged, tells the second one whether what it
//! finds is its own doing (decision 136).
//!
//! Promise: what a thread was last asked is remembered, by the next process too, until that thread
//! is asked the next, however much others are asked meanwhile.
//! Never: holds anything durable. A machine that starts anew has a kernel that sends nothing again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use holdfast_io::tree::NodeId;

/// The lane of what an earlier process was asked.
pub(crate) const EARLIER: u16 = u16::MAX;

/// Requests of earlier processes that are remembered: the last of each thread of several processes
/// that die one after the other before what they were asked is sent again.
const EARLIER_MAX: usize = 64;

/// What is noted of a request. The request is the front end's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    /// Two nodes change places: where they are then tells whether they have.
    Exchange {
        request: u64,
        /// Stands under the first name before.
        one: NodeId,
        /// Stands under the first name afterwards.
        other: NodeId,
    },
    /// An attribute that is there is taken away, or one that is not there is set.
    Attribute { request: u64, node: NodeId },
}

/// What there is to remember. Each thread has a lane of its own, which has one request at a time.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By lane.
    threads: Vec<ThreadId>,
    last: BTreeMap<u16, Noted>,
    earlier: VecDeque<Noted>,
}

impl Requests {
    /// Those of earlier processes, each with its lane, in the order in which they were noted.
    pub(crate) fn of_earlier(noted: impl IntoIterator<Item = (u16, Noted)>) -> Requests {
        let (mut last, mut earlier) = (BTreeMap::new(), VecDeque::new());
        for (lane, noted) in noted {
            match lane {
                EARLIER => earlier.push_back(noted),
                lane => drop(last.insert(lane, noted)),
            }
        }
        earlier.extend(last.into_values());
        earlier.drain(..earlier.len().saturating_sub(EARLIER_MAX));
        Requests(Mutex::new(State { earlier, ..State::default() }))
    }

    /// The lane of the thread that asks.
    pub(crate) fn lane(&self) -> u16 {
        let (mut state, own) = (self.state(), thread::current().id());
        let found = state.threads.iter().position(|thread| *thread == own);
        let lane = found.unwrap_or_else(|| {
            state.threads.push(own);
            state.threads.len() - 1
        });
        u16::try_from(lane).unwrap_or(EARLIER)
    }

    /// Remembers one that was noted, in place of the one before it in its lane.
    pub(crate) fn remember(&self, lane: u16, noted: Noted) {
        self.state().last.insert(lane, noted);
    }

    pub(crate) fn contains(&self, noted: &Noted) -> bool {
        let state = self.state();
        state.last.values().chain(&state.earlier).any(|other| other == noted)
    }

    /// All of them, for the next process.
    pub(crate) fn all(&self) -> Vec<(u16, Noted)> {
        let state = self.state();
        let earlier = state.earlier.iter().map(|noted| (EARLIER, *noted));
        earlier.chain(state.last.iter().map(|(lane, noted)| (*lane, *noted))).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

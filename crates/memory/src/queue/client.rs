//! The client's side: take a slot, put a request, wait for the response, free the slot.
//!
//! Promise: each of the four is one compare-and-swap that decides, with stores that nobody looks at
//! before it; a client that dies on the way leaves a slot that `reclaim` brings back, and nothing
//! that another must wait for.
//! Never: enters the kernel while the other side is awake.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::futex::{self, Scope};
use crate::orderings::{DONE_SEE, QUEUE_PUT, SLOT_FREE, SLOT_TAKE};
use crate::queue::Queue;
use crate::queue::page::{END, SlotIndex};
use crate::queue::slot::{Owner, Request, Response, Slot, State};

impl Queue<'_> {
    /// A free slot, now `owner`'s; `None` while all are in use: treat it as a busy device.
    #[must_use]
    pub fn acquire(&self, owner: Owner) -> Option<SlotIndex> {
        let freed = self.page.aside.freed.load(Ordering::Relaxed);
        let first = SlotIndex::at(freed).unwrap_or_default();
        first.all_from().find(|index| {
            let (slot, word) = (self.page.slot(*index), self.page.slot(*index).look());
            // EDGE freed-to-taken: whoever had the slot is done with its content.
            word.state() == Some(State::Free) && slot.swap(word, word.taken_by(owner), SLOT_TAKE)
        })
    }

    /// Puts a request into an acquired slot, and wakes the server if it sleeps.
    ///
    /// To be answered once: the slot must not be put again before it was freed and acquired.
    pub fn put(&self, index: SlotIndex, request: &Request) {
        self.fill(index, request);
        self.link(index);
        self.page.aside.bell.ring(Scope::Machine);
    }

    /// What goes before the link. A client that dies behind it is what the models need.
    pub(crate) fn fill(&self, index: SlotIndex, request: &Request) {
        let slot = self.page.slot(index);
        slot.write_request(request);
        slot.word.store(slot.look().moved_to(State::Queued).0, Ordering::Relaxed);
    }

    /// The paper's enqueue: the one step that makes a request visible.
    fn link(&self, index: SlotIndex) {
        let slot = self.page.slot(index);
        let head = &self.page.watched.head;
        let mut seen = head.load(Ordering::Relaxed);
        loop {
            slot.link(seen, END);
            // EDGE put-to-steal: request, word and link are whole before the head leads to them.
            let put =
                head.compare_exchange_weak(seen, index.offset(), QUEUE_PUT, Ordering::Relaxed);
            match put {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Waits for the response: looks `spins` times, then sleeps until `timeout` has passed.
    ///
    /// `None`: not yet. The request goes on; wait again, or see whether the server still lives.
    #[must_use]
    pub fn wait(&self, index: SlotIndex, spins: u32, timeout: Duration) -> Option<Response> {
        let slot = self.page.slot(index);
        for _ in 0..spins {
            if is_done(slot) {
                return Some(slot.read_response());
            }
            futex::pause();
        }
        sleep_until_done(slot, timeout).then(|| slot.read_response())
    }

    /// Gives the slot back. For its owner, after the response or instead of a request.
    pub fn free(&self, index: SlotIndex) {
        let slot = self.page.slot(index);
        // EDGE freed-to-taken: the response was read before another may take the slot.
        slot.word.store(slot.look().freed().0, SLOT_FREE);
        self.page.aside.freed.store(index.offset(), Ordering::Relaxed);
    }
}

/// Sleeps until the response is there or `timeout` has passed; true if it is there.
fn sleep_until_done(slot: &Slot, timeout: Duration) -> bool {
    // A time too far away for the clock is as good as none.
    let end = Instant::now().checked_add(timeout);
    while !is_done(slot) {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return false;
        }
        let word = slot.look();
        // The server changes the word in one step, and learns from it that somebody sleeps. If it
        // was faster, the word is not what the sleeper expects any more.
        let asleep = word.asleep();
        let announced = word == asleep || slot.swap(word, asleep, Ordering::Relaxed);
        if announced && word.state() != Some(State::Done) {
            futex::wait_while(&slot.word, asleep.0, left, Scope::Machine);
        }
    }
    true
}

/// Whether the response may be read.
fn is_done(slot: &Slot) -> bool {
    // EDGE done-to-read: having seen the state, the response is whole.
    let word = slot.word.load(DONE_SEE);
    super::slot::Word(word).state() == Some(State::Done)
}

//! Requests that are answered later: when the device has something, or the ring has room.
//!
//! Promise: each is answered once, by whoever brings about what it waits for; no session's thread
//! waits for a device.
//! Never: keeps more of one session than its queue has slots.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use holdfast_client::protocol::Status;
use holdfast_log::{Lsn, Marks};
use holdfast_memory::SessionMemory;
use holdfast_memory::queue::{Response, SLOTS, SlotIndex};

use crate::seat::Seat;

/// Where answers go: a session's memory, and how many it still waits for.
#[derive(Debug)]
pub(crate) struct Address {
    pub(crate) memory: SessionMemory,
    owed: AtomicUsize,
    /// Given back behind the memory, whoever had it last.
    _seat: Seat,
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Everything below is durable.
    Durable(Lsn),
    /// A payload of this length has room, or will not have had until then.
    Room(u64, Option<Instant>),
}

/// What to do with a request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// What it waits for has come about.
    Answer,
    /// It never will, or its client wants to know that it takes long.
    Refuse(Status, u64),
    /// Not yet.
    Wait,
}

#[derive(Debug)]
struct Waiting {
    address: Arc<Address>,
    slot: SlotIndex,
    need: Need,
    response: Response,
}

/// The requests that wait for one log.
#[derive(Debug, Default)]
pub(crate) struct WaitingRoom(Mutex<Vec<Waiting>>);

impl Address {
    pub(crate) fn new(memory: SessionMemory, seat: Seat) -> Address {
        Address { memory, owed: AtomicUsize::new(0), _seat: seat }
    }

    /// Answers a request. A client that changed its slot meanwhile gets no answer; the queue
    /// counts that.
    pub(crate) fn answer(&self, slot: SlotIndex, response: &Response) {
        let _damage = self.memory.queue().complete(slot, response);
    }
}

impl WaitingRoom {
    /// Takes a request in, with the answer it gets then. False if its session already waits for as
    /// many as it has slots, which only a client does that writes where it must not.
    pub(crate) fn enter(
        &self,
        address: &Arc<Address>,
        slot: SlotIndex,
        need: Need,
        response: Response,
    ) -> bool {
        if address.owed.fetch_add(1, Ordering::Relaxed) >= SLOTS {
            address.owed.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        let waiting = Waiting { address: Arc::clone(address), slot, need, response };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(waiting);
        true
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Answers whom `judge` says can be answered.
    pub(crate) fn settle(&self, judge: impl Fn(Need) -> Verdict) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|one| {
            let response = match judge(one.need) {
                Verdict::Wait => return true,
                Verdict::Answer => one.response,
                Verdict::Refuse(status, value) => refusal(status, value),
            };
            one.address.answer(one.slot, &response);
            one.address.owed.fetch_sub(1, Ordering::Relaxed);
            false
        });
    }

    /// Forgets what a session waits for that is over.
    pub(crate) fn forget(&self, address: &Arc<Address>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|one| !Arc::ptr_eq(&one.address, address));
    }
}

impl Need {
    /// Whether the marks alone say that it has come about.
    pub(crate) fn is_met(self, marks: &Marks) -> bool {
        matches!(self, Need::Durable(upto) if upto <= marks.durable)
    }
}

/// An answer that says no.
pub(crate) fn refusal(status: Status, value: u64) -> Response {
    Response { status: status as u32, bytes: 0, value: [value, 0] }
}

//! Models of the queue: two producers, one taker, three slots.
//!
//! Promise: the same source runs under loom, which tries every interleaving and reordering of a
//! small case, and under shuttle, which tries many schedules of a larger one.
//! Never: knows which of them runs it; `rig` does.

use std::sync::atomic::{AtomicU64 as Counter, Ordering};
use std::time::Duration;

use crate::queue::{Owner, Page, Queue, Request, Response, SLOTS, SlotIndex};
use crate::rig::{Arc, AtomicBool, explore, spawn, yield_now};

/// For who sleeps. Models do not wait by the clock.
pub(crate) const FOREVER: Duration = Duration::MAX;

/// For who only looks: sleeping has models of its own, and makes these ones many times longer.
const NO_TIME: Duration = Duration::ZERO;

pub(crate) struct Shared {
    page: Page,
    damages: Counter,
    pub(crate) dead: AtomicBool,
}

impl Shared {
    pub(crate) fn new() -> Arc<Shared> {
        let (page, damages) = (Page::new(), Counter::new(0));
        Arc::new(Shared { page, damages, dead: AtomicBool::new(false) })
    }

    pub(crate) fn queue(&self) -> Queue<'_> {
        Queue::over(&self.page, &self.damages)
    }
}

pub(crate) fn owner(number: u16) -> Owner {
    Owner::new(number).unwrap()
}

/// A request that says whose it is and which.
pub(crate) fn request(owner: u16, sequence: u64) -> Request {
    Request { sequence, argument: [u64::from(owner), sequence], ..Request::default() }
}

pub(crate) fn acquire(queue: Queue<'_>, number: u16) -> SlotIndex {
    loop {
        if let Some(slot) = queue.acquire(owner(number)) {
            return slot;
        }
        yield_now();
    }
}

/// Acquires a slot and puts one request.
fn put(shared: &Shared, number: u16, sequence: u64) -> SlotIndex {
    let slot = acquire(shared.queue(), number);
    shared.queue().put(slot, &request(number, sequence));
    slot
}

/// Looks once for the response to a request, and frees the slot if it is there.
pub(crate) fn is_answered(shared: &Shared, slot: SlotIndex, number: u16, sequence: u64) -> bool {
    let response = shared.queue().wait(slot, 0, NO_TIME);
    if let Some(response) = response {
        assert_eq!(response.value, [u64::from(number), sequence]);
        shared.queue().free(slot);
    }
    response.is_some()
}

/// Takes and answers the oldest request; whose and which it was.
pub(crate) fn serve_one(shared: &Shared) -> Option<(u16, u64)> {
    let taken = shared.queue().take().unwrap()?;
    let Request { sequence, argument, .. } = taken.request;
    assert_eq!(argument, [u64::from(taken.owner.get()), sequence]);
    let response = Response { value: argument, ..Response::default() };
    shared.queue().complete(taken.slot, &response).unwrap();
    Some((taken.owner.get(), sequence))
}

/// Takes and answers all there is now.
fn serve_all(shared: &Shared) -> Vec<(u16, u64)> {
    std::iter::from_fn(|| serve_one(shared)).collect()
}

/// The requests of one owner, in the order in which they were served.
pub(crate) fn of(served: &[(u16, u64)], number: u16) -> Vec<u64> {
    served.iter().filter(|(owner, _)| *owner == number).map(|(_, sequence)| *sequence).collect()
}

#[test]
fn two_producers_get_their_own_answers_from_one_taker() {
    explore(|| {
        let shared = Shared::new();
        let producers = [1, 2].map(|number| {
            let shared = Arc::clone(&shared);
            spawn(move || {
                let slot = put(&shared, number, 1);
                (!is_answered(&shared, slot, number, 1)).then_some((slot, number))
            })
        });
        let mut served: Vec<_> = serve_one(&shared).into_iter().collect();
        let waiting = producers.map(|producer| producer.join().unwrap());
        served.extend(serve_all(&shared));
        for (slot, number) in waiting.into_iter().flatten() {
            assert!(is_answered(&shared, slot, number, 1));
        }
        assert_eq!((of(&served, 1), of(&served, 2)), (vec![1], vec![1]));
        assert_eq!(shared.queue().damage_count(), 0);
    });
}

#[test]
fn what_one_producer_puts_first_is_taken_first() {
    explore(|| {
        let shared = Shared::new();
        let producers = [(1, 2), (2, 1)].map(|(number, count)| {
            let shared = Arc::clone(&shared);
            spawn(move || {
                for sequence in 1..=count {
                    put(&shared, number, sequence);
                }
            })
        });
        let mut served: Vec<_> = (0..2).filter_map(|_| serve_one(&shared)).collect();
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        served.extend(serve_all(&shared));
        assert_eq!((of(&served, 1), of(&served, 2)), (vec![1, 2], vec![1]));
        assert_eq!(shared.queue().damage_count(), 0);
    });
}

#[test]
fn a_slot_is_filled_only_after_its_last_owner_is_done_with_it() {
    explore(|| {
        let shared = Shared::new();
        // One slot is left for two.
        (1..SLOTS).for_each(|_| assert!(shared.queue().acquire(owner(9)).is_some()));
        let use_slot = |shared: &Shared, number: u16| {
            let slot = acquire(shared.queue(), number);
            shared.queue().fill(slot, &request(number, 1));
            shared.queue().free(slot);
        };
        let other = Arc::clone(&shared);
        let other = spawn(move || use_slot(&other, 1));
        use_slot(&shared, 2);
        other.join().unwrap();
    });
}

/// Where a client stops for good.
#[derive(Clone, Copy)]
enum Stop {
    Acquired,
    Filled,
    Put,
}

/// A client dies while another works; the taker serves both and brings the slot back.
fn survive(stop: Stop) {
    explore(move || {
        let shared = Shared::new();
        let victim = Arc::clone(&shared);
        let victim = spawn(move || {
            let slot = acquire(victim.queue(), 1);
            match stop {
                Stop::Acquired => {}
                Stop::Filled => victim.queue().fill(slot, &request(1, 1)),
                Stop::Put => victim.queue().put(slot, &request(1, 1)),
            }
            // The kernel's witness comes after the last instruction of the dead.
            victim.dead.store(true, Ordering::Release);
        });
        let other = Arc::clone(&shared);
        let other = spawn(move || put(&other, 2, 1));

        let is_dead = |who: Owner| who == owner(1) && shared.dead.load(Ordering::Acquire);
        let mut freed = shared.queue().reclaim(&is_dead).unwrap();
        let mut served: Vec<_> = serve_one(&shared).into_iter().collect();
        victim.join().unwrap();
        freed += shared.queue().reclaim(&is_dead).unwrap();
        other.join().unwrap();
        served.extend(serve_all(&shared));
        freed += shared.queue().reclaim(&is_dead).unwrap();
        assert_eq!((freed, of(&served, 2)), (1, vec![1]));
        let left = (0..SLOTS).filter(|_| shared.queue().acquire(owner(3)).is_some()).count();
        assert_eq!(left, SLOTS - 1, "only the living has one");
    });
}

#[test]
fn a_client_that_dies_with_a_slot_loses_it_and_stops_nobody() {
    survive(Stop::Acquired);
}

#[test]
fn a_client_that_dies_before_it_linked_its_slot_loses_it_and_stops_nobody() {
    survive(Stop::Filled);
}

#[test]
fn a_client_that_dies_after_it_put_is_served_and_then_loses_its_slot() {
    survive(Stop::Put);
}

#[test]
fn a_request_that_a_sleeping_server_did_not_see_wakes_it() {
    explore(|| {
        let shared = Shared::new();
        let producer = Arc::clone(&shared);
        let producer = spawn(move || put(&producer, 1, 1));
        // A lost wake-up sleeps for ever, which the model reports.
        assert!(shared.queue().wait_for_work(0, FOREVER));
        producer.join().unwrap();
    });
}

#[test]
fn a_response_that_a_sleeping_client_did_not_see_wakes_it() {
    explore(|| {
        let shared = Shared::new();
        let slot = put(&shared, 1, 1);
        let server = Arc::clone(&shared);
        let server = spawn(move || serve_all(&server));
        assert!(shared.queue().wait(slot, 0, FOREVER).is_some());
        server.join().unwrap();
    });
}

//! Random schedules of the queue: the models that loom exhausts, and one too large for it.
//!
//! Promise: the module checked is the product's own source, included by path and built on shuttle's
//! atomics. A failure prints the schedule that repeats it.
//! Never: reorders memory accesses; loom does.
//!
//! HOLDFAST_SCHEDULES is how many schedules each model gets.

#![cfg(shuttle)]
// A model that cannot go on stops.
#![allow(clippy::unwrap_used)]

#[path = "../../src/atomics.rs"]
mod atomics;
#[path = "../../src/bell.rs"]
mod bell;
// More than these models need, and so is `orderings`.
#[allow(dead_code)]
#[path = "../../src/futex.rs"]
mod futex;
#[allow(dead_code)]
#[path = "../../src/orderings.rs"]
mod orderings;
// Public in the product, and more than the models need.
#[allow(dead_code, unreachable_pub, unused_imports)]
#[path = "../../src/queue.rs"]
mod queue;
#[path = "../loom/queue_models.rs"]
mod queue_models;
#[path = "../../src/words.rs"]
mod words;

use std::sync::atomic::Ordering;

use queue_models::{FOREVER, Shared, acquire, is_answered, of, owner, request, serve_one};
use rig::{Arc, explore, spawn};

/// What the models need of the tool that runs them.
mod rig {
    pub(crate) use shuttle::sync::Arc;
    pub(crate) use shuttle::sync::atomic::AtomicBool;
    pub(crate) use shuttle::thread::{spawn, yield_now};

    pub(crate) fn explore(model: impl Fn() + Sync + Send + 'static) {
        let given = std::env::var("HOLDFAST_SCHEDULES").ok().map(|count| count.parse().unwrap());
        shuttle::check_random(model, given.unwrap_or(1_000));
    }
}

/// Requests of each producer.
const REQUESTS: u64 = 3;

#[test]
fn three_sleepy_producers_and_a_dying_one_are_served_by_a_sleepy_taker() {
    explore(|| {
        let shared = Shared::new();
        let victim = Arc::clone(&shared);
        spawn(move || {
            let slot = acquire(victim.queue(), 9);
            if shuttle::rand::Rng::gen_bool(&mut shuttle::rand::thread_rng(), 0.5) {
                victim.queue().fill(slot, &request(9, 1));
            }
            victim.dead.store(true, Ordering::Release);
        });
        let producers = [1, 2, 3].map(|number| {
            let shared = Arc::clone(&shared);
            spawn(move || {
                for sequence in 1..=REQUESTS {
                    let slot = acquire(shared.queue(), number);
                    shared.queue().put(slot, &request(number, sequence));
                    assert!(shared.queue().wait(slot, 1, FOREVER).is_some());
                    assert!(is_answered(&shared, slot, number, sequence));
                }
            })
        });
        let is_dead = |who| who == owner(9) && shared.dead.load(Ordering::Acquire);
        let mut served = Vec::new();
        while served.len() < 3 * REQUESTS as usize {
            assert!(shared.queue().wait_for_work(1, FOREVER));
            served.extend(std::iter::from_fn(|| serve_one(&shared)));
            shared.queue().reclaim(&is_dead).unwrap();
        }
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        for number in [1, 2, 3] {
            assert_eq!(of(&served, number), (1..=REQUESTS).collect::<Vec<_>>());
        }
        assert_eq!(shared.queue().damage_count(), 0);
    });
}

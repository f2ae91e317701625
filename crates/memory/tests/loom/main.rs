//! Every interleaving, and every reordering the memory model allows, of publish, lock, turn, bell
//! and queue.
//!
//! Promise: the modules checked are the product's own source, included by path and built on loom's
//! atomics; each model fails when the order it is about is weakened (`loom.sh` shows that).
//! Never: touches mapped memory or a real futex: the models' bytes are loom's cells.

#![cfg(loom)]
// A model that cannot go on stops.
#![allow(clippy::unwrap_used)]

#[path = "../../src/atomics.rs"]
mod atomics;
#[path = "../../src/bell.rs"]
mod bell;
#[path = "../../src/futex.rs"]
mod futex;
#[path = "../../src/lock.rs"]
mod lock;
// Public in the product, and more than the models need.
#[allow(dead_code, unreachable_pub)]
#[path = "../../src/marks.rs"]
mod marks;
#[path = "../../src/orderings.rs"]
mod orderings;
// Public in the product, and more than the models need.
#[allow(dead_code, unreachable_pub, unused_imports)]
#[path = "../../src/queue.rs"]
mod queue;
mod queue_models;
#[allow(unsafe_code)]
mod raw;
#[path = "../../src/turn.rs"]
mod turn;

/// What stands for the words that a slot's owner and the server hand to each other.
mod words {
    pub(crate) use crate::raw::Words;
}

use std::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64};
use loom::thread;

use bell::Bell;
use futex::Scope;
use lock::Lock;
use marks::MarkWords;
use raw::Plain;
use turn::{Turn, look_anew};

/// A ring of one byte: the second append must wait for the release of the first.
struct TinyRing {
    marks: MarkWords,
    byte: Plain,
}

/// Runs all interleavings in which a thread is preempted at most three times: what loom's authors
/// found enough to expose ordering mistakes, and what ends within seconds.
pub(crate) fn every_interleaving(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// What the models of the queue need of the tool that runs them.
pub(crate) mod rig {
    pub(crate) use super::every_interleaving as explore;
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64};
    pub(crate) use loom::thread::{spawn, yield_now};
}

fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

#[test]
fn a_reader_that_sees_the_tail_sees_the_bytes_below_it() {
    every_interleaving(|| {
        let ring = Arc::new(TinyRing { marks: MarkWords::new(), byte: Plain::new(0) });
        let writer = Arc::clone(&ring);
        let writer = thread::spawn(move || {
            writer.byte.write(7);
            writer.marks.publish(1);
        });
        if ring.marks.tail() == 1 {
            assert_eq!(ring.byte.read(), 7);
        }
        writer.join().unwrap();
    });
}

#[test]
fn bytes_are_overwritten_only_after_their_reader_released_them() {
    every_interleaving(|| {
        let ring = Arc::new(TinyRing { marks: MarkWords::new(), byte: Plain::new(7) });
        ring.marks.publish(1);
        let reader = Arc::clone(&ring);
        let reader = thread::spawn(move || {
            assert_eq!(reader.byte.read(), 7);
            reader.marks.set_durable(1);
            reader.marks.set_released(1);
        });
        if ring.marks.released() == 1 {
            ring.byte.write(8);
            ring.marks.publish(2);
        }
        reader.join().unwrap();
    });
}

#[test]
fn holders_exclude_each_other_and_hand_over_what_they_did() {
    every_interleaving(|| {
        let shared = Arc::new((Lock::new(), Plain::new(0)));
        let append = |shared: &(Lock, Plain)| {
            shared.0.take(1, |_| false);
            shared.1.write(shared.1.read() + 1);
            shared.0.give(1);
        };
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || append(&other));
        append(&shared);
        other.join().unwrap();
        shared.0.take(1, |_| false);
        assert_eq!(shared.1.read(), 2);
        shared.0.give(1);
    });
}

#[test]
fn a_lock_left_by_the_dead_is_taken_by_one_of_the_living() {
    every_interleaving(|| {
        let shared = Arc::new((Lock::new(), Plain::new(0), AtomicBool::new(false)));
        let victim = Arc::clone(&shared);
        let victim = thread::spawn(move || {
            victim.0.take(1, |_| false);
            victim.1.write(5);
            // The kernel's witness: it drops the claim after the last instruction of the dead.
            victim.2.store(true, Ordering::Release);
        });
        wait_until(|| shared.2.load(Ordering::Acquire));
        let heir = |shared: &(Lock, Plain, AtomicBool)| {
            shared.0.take(2, |holder| holder == 1);
            shared.1.write(shared.1.read() + 1);
            shared.0.give(2);
        };
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || heir(&other));
        heir(&shared);
        other.join().unwrap();
        victim.join().unwrap();
        shared.0.take(2, |_| false);
        assert_eq!(shared.1.read(), 7);
        shared.0.give(2);
    });
}

/// Memory that two hosts have, and who of them attached it last.
struct SharedRing {
    ring: TinyRing,
    newest: AtomicU64,
}

impl SharedRing {
    /// What an append does on such memory; true if it is acknowledged.
    fn append(&self, host: u64) -> bool {
        let turn = Turn::new(&self.newest, host);
        if !turn.is_ours() {
            return false;
        }
        self.ring.byte.write(7);
        let is_published = turn.is_ours() && self.ring.marks.publish_from(0, 1);
        look_anew(|| ());
        is_published && turn.is_ours()
    }

    /// What an attach does; true if it finds the append.
    fn attach(&self, host: u64) -> bool {
        assert!(Turn::new(&self.newest, host).take(host - 1), "nobody else attaches");
        look_anew(|| ());
        let is_found = self.ring.marks.tail() == 1;
        assert!(!is_found || self.ring.byte.read() == 7);
        is_found
    }
}

#[test]
fn an_acknowledged_append_is_seen_by_the_host_that_attaches_meanwhile() {
    every_interleaving(|| {
        let ring = TinyRing { marks: MarkWords::new(), byte: Plain::new(0) };
        let shared = Arc::new(SharedRing { ring, newest: AtomicU64::new(1) });
        let owner = Arc::clone(&shared);
        let owner = thread::spawn(move || owner.append(1));
        let is_found = shared.attach(2);
        let is_acknowledged = owner.join().unwrap();
        assert!(is_found || !is_acknowledged, "an acknowledged append is lost");
    });
}

#[test]
fn a_sleeper_that_announced_itself_under_the_lock_is_woken_without_a_fence() {
    every_interleaving(|| {
        let shared = Arc::new((Lock::new(), MarkWords::new(), Bell::new()));
        let publisher = Arc::clone(&shared);
        let publisher = thread::spawn(move || {
            publisher.0.take(1, |_| false);
            publisher.1.publish(1);
            let wake = publisher.2.has_sleepers();
            publisher.0.give(1);
            if wake {
                publisher.2.ring_sleepers(Scope::Process);
            }
        });
        shared.0.take(1, |_| false);
        let sleeper = shared.2.announce();
        shared.0.give(1);
        sleeper.sleep_unless(|| shared.1.tail() == 1, None, Scope::Process);
        assert_eq!(shared.1.tail(), 1);
        publisher.join().unwrap();
    });
}

#[test]
fn a_sleeper_is_woken_by_the_publication_it_did_not_see() {
    every_interleaving(|| {
        let shared = Arc::new((MarkWords::new(), Bell::new()));
        let publisher = Arc::clone(&shared);
        let publisher = thread::spawn(move || {
            publisher.0.publish(1);
            publisher.1.ring(Scope::Process);
        });
        // A lost wake-up sleeps for ever, which loom reports as too many branches.
        shared.1.wait_unless(|| shared.0.tail() == 1, None, Scope::Process);
        assert_eq!(shared.0.tail(), 1);
        publisher.join().unwrap();
    });
}

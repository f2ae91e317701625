//! Every interleaving, and every reordering the memory model allows, of those who write the
//! catalogue while others commit and checkpoint.
//!
//! Promise: what reads the marks and takes turns is the product's own source, included by path and
//! built on loom's atomics and locks; so are the marks of a region. The models fail when an order
//! they are about is weakened (`loom.sh` shows that).
//! Never: touches a region or a file: the model's catalogue is the two positions of a real one that
//! an open compares.

#![cfg(loom)]
// A model that cannot go on stops.
#![allow(clippy::unwrap_used)]

// The marks of a region, and what they are made of. Public there, and more than is needed here.
#[allow(dead_code, unused_imports)]
#[path = "../../../memory/src/atomics.rs"]
mod atomics;
#[allow(dead_code, unreachable_pub)]
#[path = "../../../memory/src/marks.rs"]
mod marks;
#[allow(dead_code)]
#[path = "../../src/append/needs.rs"]
mod needs;
#[path = "../../src/orderings.rs"]
mod orderings_of_logs;
#[allow(dead_code)]
#[path = "../../../memory/src/orderings.rs"]
mod orderings_of_memory;
#[path = "../../src/sync.rs"]
mod sync;

/// Both crates look for the names of their orders here.
mod orderings {
    pub(crate) use crate::orderings_of_logs::*;
    pub(crate) use crate::orderings_of_memory::*;
}

use holdfast_core::Lsn;
use loom::sync::Arc;
use loom::thread;

use marks::MarkWords;
use needs::{InTurn, Needs, see_marked, tell_marked};
use sync::AtomicU64;

/// What an open compares of a catalogue.
#[derive(Default)]
struct Catalogue {
    first: Lsn,
    durable: Lsn,
}

/// A log: who commits moves `marks`, who checkpoints `marked`.
struct Model {
    marks: MarkWords,
    marked: AtomicU64,
    catalogue: InTurn<Catalogue>,
}

impl Model {
    fn new() -> Arc<Model> {
        let (marks, marked) = (MarkWords::new(), AtomicU64::new(0));
        marks.publish(9);
        Arc::new(Model { marks, marked, catalogue: InTurn::new(Catalogue::default()) })
    }

    /// A commit, and the checkpoint that it allows.
    fn commit_and_mark(&self, upto: u64) {
        self.marks.set_durable(upto);
        tell_marked(&self.marked, Lsn(self.marks.read().durable));
    }

    /// A log that stays on its device: the reader's mark says what is released.
    fn needs_on_device(&self) -> Needs {
        let (released, marks) = see_marked(&self.marked, || self.marks.read());
        Needs { released, durable: Lsn(marks.durable), generation: 1 }
    }

    /// A log that stays in its ring: what was given back is released.
    fn needs_in_ring(&self) -> Needs {
        let (_, marks) = see_marked(&self.marked, || self.marks.read());
        Needs { released: Lsn(marks.released), durable: Lsn(marks.durable), generation: 1 }
    }

    /// What a drainer does when a segment is recycled, or a commit, a close or a checkpoint.
    fn write(&self, look: impl Fn() -> Needs) {
        self.catalogue.write(look, |catalogue, needs| {
            catalogue.durable = needs.durable;
            catalogue.first = needs.begin(catalogue.first, true);
            let Catalogue { first, durable } = *catalogue;
            assert!(first <= durable, "no open takes a catalogue from {first} to {durable}");
        });
    }
}

/// Runs all interleavings in which a thread is preempted at most three times.
fn every_interleaving(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn what_a_drainer_reads_is_a_pair_while_others_commit_and_checkpoint() {
    every_interleaving(|| {
        let log = Model::new();
        let other = Arc::clone(&log);
        let other = thread::spawn(move || [1, 2].map(|upto| other.commit_and_mark(upto)));
        log.write(|| log.needs_on_device());
        other.join().unwrap();
        log.write(|| log.needs_on_device());
    });
}

#[test]
fn of_two_who_write_the_later_knows_what_the_earlier_knew() {
    every_interleaving(|| {
        let log = Model::new();
        let (drainer, committer) = (Arc::clone(&log), Arc::clone(&log));
        let drainer = thread::spawn(move || drainer.write(|| drainer.needs_on_device()));
        let committer = thread::spawn(move || {
            committer.commit_and_mark(1);
            committer.write(|| committer.needs_on_device());
        });
        log.write(|| log.needs_on_device());
        drainer.join().unwrap();
        committer.join().unwrap();
    });
}

#[test]
fn what_a_ring_gave_back_is_seen_to_be_durable() {
    every_interleaving(|| {
        let log = Model::new();
        let other = Arc::clone(&log);
        let other = thread::spawn(move || {
            for upto in [1, 2] {
                other.marks.set_durable(upto);
                other.marks.set_released(upto);
            }
        });
        log.write(|| log.needs_in_ring());
        other.join().unwrap();
    });
}

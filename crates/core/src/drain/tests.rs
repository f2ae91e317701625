//! Drains step by step: what flies, what counts as durable, and when it ends for good.

extern crate std;

use std::vec::Vec;

use super::*;

const SPAN: u64 = 64 << 10;
const BLOCK: u64 = BLOCK_BYTES;

fn geometry() -> Geometry {
    Geometry::new(4 * SPAN, SPAN).expect("four segments")
}

/// A drain that may have all flights under way.
fn drain(durable: Lsn) -> Drain {
    let mut drain = Drain::new(geometry(), durable);
    drain.set_depth(FLIGHTS_MAX);
    drain
}

/// A trace so far: the drain, what it has under way, and what was really synced.
#[derive(Clone)]
struct Trace {
    drain: Drain,
    published: Lsn,
    flying: Vec<Flight>,
    synced: Vec<Flight>,
    failed: bool,
}

impl Trace {
    fn new() -> Trace {
        let drain = drain(Lsn::ZERO);
        let (flying, synced) = (Vec::new(), Vec::new());
        Trace { drain, published: Lsn::ZERO, flying, synced, failed: false }
    }

    fn publish_and_begin(&mut self, blocks: u64) {
        self.published = self.published.advance(blocks * BLOCK);
        let (assigned, durable) = (self.drain.assigned(), self.drain.durable());
        let had_room = self.drain.has_room();
        let Some(flight) = self.drain.begin(self.published) else {
            assert!(self.failed || !self.flying.is_empty(), "nothing keeps it from flying");
            return;
        };
        assert!(had_room && !self.failed, "nothing flies after a failure");
        assert!(flight.from == assigned && flight.from < flight.to, "in order, nothing twice");
        assert!(flight.to <= self.published, "only published bytes are written");
        let span = durable.align_down(SPAN);
        assert!(flight.from >= span && flight.to <= span.advance(SPAN), "one span at a time");
        self.flying.push(flight);
        assert!(self.flying.len() <= FLIGHTS_MAX);
    }

    fn land(&mut self, which: usize) {
        let flight = self.flying.remove(which);
        self.synced.push(flight);
        let before = self.drain.durable();
        let durable = self.drain.land(flight);
        assert!(durable == self.drain.durable() && durable >= before, "durable never falls");
        assert!(!self.failed || durable == before, "poison is final");
        assert!(self.failed || durable == self.reached(), "all that landed in order counts");
    }

    /// How far the device has everything.
    fn reached(&self) -> Lsn {
        let mut at = Lsn::ZERO;
        while let Some(flight) = self.synced.iter().find(|flight| flight.from == at) {
            at = flight.to;
        }
        at
    }
}

/// Every order of publications, landings and failures, to a depth.
fn explore(trace: &Trace, depth: u32, seen: &mut u64) {
    *seen += 1;
    if depth == 0 {
        return;
    }
    for blocks in [1, 16, 17] {
        let mut next = trace.clone();
        next.publish_and_begin(blocks);
        explore(&next, depth - 1, seen);
    }
    for which in 0..trace.flying.len() {
        let mut next = trace.clone();
        next.land(which);
        explore(&next, depth - 1, seen);
    }
    if !trace.failed && !trace.flying.is_empty() {
        let mut next = trace.clone();
        next.drain.fail();
        next.failed = true;
        explore(&next, depth - 1, seen);
    }
}

#[test]
fn no_order_of_landings_makes_anything_durable_that_was_not_synced() {
    let mut seen = 0;
    explore(&Trace::new(), 8, &mut seen);
    assert!(seen > 50_000, "{seen} traces");
}

#[test]
fn what_landed_early_waits_for_what_lies_before_it() {
    let mut drain = drain(Lsn(0));
    let first = drain.begin(Lsn(BLOCK)).expect("a block is published");
    let second = drain.begin(Lsn(2 * BLOCK)).expect("and another");
    assert_eq!(drain.land(second), Lsn(0));
    assert_eq!(drain.land(first), Lsn(2 * BLOCK));
}

#[test]
fn the_next_span_waits_until_this_one_is_durable() {
    let mut drain = drain(Lsn(SPAN - 2 * BLOCK));
    let first = drain.begin(Lsn(SPAN - BLOCK)).expect("there is room");
    let last = drain.begin(Lsn(SPAN + BLOCK)).expect("up to the end of the span");
    assert_eq!(last.to, Lsn(SPAN));
    assert_eq!(drain.begin(Lsn(SPAN + BLOCK)), None);
    let _durable = drain.land(last);
    assert_eq!(drain.begin(Lsn(SPAN + BLOCK)), None);
    let _durable = drain.land(first);
    assert!(drain.begin(Lsn(SPAN + BLOCK)).is_some());
}

#[test]
fn no_more_fly_than_there_are_slots() {
    let mut drain = drain(Lsn(0));
    for block in 1..=FLIGHTS_MAX as u64 {
        assert!(drain.begin(Lsn(block * BLOCK)).is_some());
    }
    assert_eq!(drain.begin(Lsn(9 * BLOCK)), None);
    assert_eq!(drain.flying(), FLIGHTS_MAX);
}

#[test]
fn no_more_fly_than_the_depth_allows() {
    let mut drain = Drain::new(geometry(), Lsn(0));
    assert!(drain.begin(Lsn(BLOCK)).is_some());
    assert_eq!(drain.begin(Lsn(2 * BLOCK)), None);
    drain.set_depth(2);
    assert!(drain.begin(Lsn(2 * BLOCK)).is_some());
}

#[test]
fn nothing_published_is_no_flight() {
    assert_eq!(drain(Lsn(BLOCK)).begin(Lsn(BLOCK)), None);
}

#[test]
#[should_panic(expected = "begun, once")]
fn a_landing_that_was_no_flight_is_our_mistake() {
    let _durable = drain(Lsn(0)).land(Flight { from: Lsn(0), to: Lsn(BLOCK) });
}

#[test]
#[should_panic(expected = "is_aligned")]
fn a_tail_that_was_not_sealed_is_our_mistake() {
    let _flight = drain(Lsn(0)).begin(Lsn(48));
}

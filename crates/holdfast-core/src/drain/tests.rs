//! Drains step by step: what is written next, what counts as durable, and when it ends for good.

extern crate std;

use std::vec::Vec;

use super::*;

const SPAN: u64 = 64 << 10;
const BLOCK: u64 = BLOCK_BYTES;

fn geometry() -> Geometry {
    Geometry::new(4 * SPAN, SPAN).expect("four segments")
}

/// What the world may answer to a command.
fn answers(command: Command) -> Vec<Event> {
    match command {
        Command::Write { from, to } => {
            let half = Lsn(from.0 + (to.0 - from.0) / 2).align_down(BLOCK);
            let mut answers = std::vec![Event::Written { to }, Event::Failed];
            if half > from {
                answers.push(Event::Written { to: half });
            }
            answers
        }
        Command::Sync => std::vec![Event::Synced, Event::Failed],
        Command::Rest | Command::Advance { .. } | Command::Poison => Vec::new(),
    }
}

/// A trace so far: the drain, what it waits for, and what was really written and synced.
#[derive(Clone)]
struct Trace {
    drain: Drain,
    asked: Command,
    published: Lsn,
    written: Lsn,
    synced: Lsn,
}

impl Trace {
    fn take(&mut self, event: Event) -> Command {
        let before = self.drain.durable();
        match event {
            Event::Written { to } => self.written = to,
            Event::Synced => self.synced = self.written,
            Event::Published { tail } => self.published = tail,
            Event::Failed => {}
        }
        let poisoned = self.drain.is_poisoned();
        let command = self.drain.on(event);
        assert!(!poisoned || command == Command::Poison, "poison is final");
        assert!(self.drain.durable() >= before, "durable never falls");
        assert!(self.drain.durable() <= self.synced, "only what was synced is durable");
        if let Command::Write { from, to } = command {
            assert!(from < to && to <= self.published, "only published bytes are written");
            assert_eq!(from, self.written, "in order, nothing twice");
            assert!(to <= Lsn(from.0 / SPAN * SPAN + SPAN), "one span, one file");
        }
        if let Command::Advance { durable } = command {
            assert_eq!(durable, self.drain.durable());
        }
        command
    }
}

/// Every order of publications, whole and short writes, syncs and failures, to a depth.
fn explore(trace: &Trace, depth: u32, seen: &mut u64) {
    *seen += 1;
    if depth == 0 {
        return;
    }
    for blocks in [1, 16, 17] {
        let mut next = trace.clone();
        let tail = next.published.advance(blocks * BLOCK);
        let command = next.take(Event::Published { tail });
        let busy = !answers(trace.asked).is_empty();
        if busy {
            let quiet = matches!(command, Command::Rest | Command::Poison);
            assert!(quiet, "never two drains at once");
        } else {
            next.asked = command;
        }
        explore(&next, depth - 1, seen);
    }
    for event in answers(trace.asked) {
        let mut next = trace.clone();
        next.asked = next.take(event);
        explore(&next, depth - 1, seen);
    }
}

#[test]
fn no_order_of_events_makes_anything_durable_that_was_not_synced() {
    let start = Lsn::ZERO;
    let drain = Drain::new(geometry(), start);
    let asked = Command::Rest;
    let trace = Trace { drain, asked, published: start, written: start, synced: start };
    let mut seen = 0;
    explore(&trace, 8, &mut seen);
    assert!(seen > 50_000, "{seen} traces");
}

#[test]
fn nothing_to_drain_is_no_command() {
    let mut drain = Drain::new(geometry(), Lsn(BLOCK));
    assert_eq!(drain.on(Event::Published { tail: Lsn(BLOCK) }), Command::Rest);
}

#[test]
#[should_panic(expected = "answers no command")]
fn a_sync_that_nobody_asked_for_is_our_mistake() {
    let _command = Drain::new(geometry(), Lsn(0)).on(Event::Synced);
}

#[test]
#[should_panic(expected = "is_aligned")]
fn a_tail_that_was_not_sealed_is_our_mistake() {
    let _command = Drain::new(geometry(), Lsn(0)).on(Event::Published { tail: Lsn(48) });
}

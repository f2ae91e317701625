//! Every state that a small ring can come to: from each of them it can be emptied.
//!
//! All sequences of appends, drains, marks, releases and deaths, of lengths that matter: what ends
//! inside a block, what fills one, the largest. A state is what admission knows of; two that differ
//! by whole rings are one.

use super::super::*;
use super::std::collections::{HashMap, VecDeque};

const SEGMENT: u64 = SPAN_BYTES_MIN;
const RING: u64 = 2 * SEGMENT;
/// The shortest window of frames, and the unit of the longer frames.
const STEP: u64 = BLOCK_BYTES / 2;
const PAYLOADS: [u64; 3] =
    [STEP - HEADER_BYTES, 3 * STEP - HEADER_BYTES, SEGMENT / 2 - HEADER_BYTES];
/// Drains that bring two spans and what was under way to the device, and one more.
const DRAINS_MAX: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    released: u64,
    durable: u64,
    tail: u64,
    /// Where the last seal ended, as the living process knows.
    sealed: u64,
    /// What the newest mark says, and where its frame ends; a later release follows it.
    marked: u64,
    mark_end: u64,
}

/// By which rules marks are said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// Those of the ring, and the catalogue for a mark without a place.
    Ours,
    /// In the ring as long as there is room, whatever they give: what must not be enough.
    RingAlone,
}

fn geometry() -> Geometry {
    Geometry::new(RING, SEGMENT).expect("two segments")
}

impl State {
    const NEW: State =
        State { released: 0, durable: 0, tail: 0, sealed: 0, marked: 0, mark_end: 0 };

    fn at(&self) -> Occupancy {
        let (released, durable, tail) = (Lsn(self.released), Lsn(self.durable), Lsn(self.tail));
        Occupancy { released, durable, tail, dirty_bytes_max: u64::MAX }
    }

    /// The same state with small numbers.
    fn canonical(self) -> State {
        let rings = self.released / RING * RING;
        State {
            released: self.released - rings,
            durable: self.durable - rings,
            tail: self.tail - rings,
            sealed: self.sealed.saturating_sub(rings),
            marked: self.marked.saturating_sub(rings).max(self.released - rings),
            mark_end: self.mark_end.saturating_sub(rings),
        }
    }

    fn append(self, payload_bytes: u64) -> Option<State> {
        let place = geometry().place(&self.at(), payload_bytes).ok()?;
        Some(State { tail: place.end.0, ..self })
    }

    fn drain(self) -> Option<State> {
        if self.durable == self.tail {
            return None;
        }
        let mut next = self;
        if let Some(end) = geometry().seal(&self.at(), Lsn(self.sealed)) {
            assert!(end.0 <= self.released + RING, "no room for a seal: {self:?}");
            (next.tail, next.sealed) = (end.0, end.0);
        }
        next.durable = next.tail.min(geometry().span_end(Lsn(self.durable)).0);
        assert!(next.durable.is_multiple_of(BLOCK_BYTES) && next.durable > self.durable);
        Some(next)
    }

    /// The reader says that it is done below `upto`.
    fn mark(self, upto: u64, rules: Rules) -> Option<State> {
        if upto <= self.marked {
            return None;
        }
        let place = match rules {
            Rules::Ours => geometry().place_mark(&self.at(), upto - self.released),
            Rules::RingAlone => geometry().place_in_reserve(&self.at(), BLOCK_BYTES),
        };
        match place {
            Ok(place) => {
                let end = place.end.0;
                Some(State { tail: end, marked: upto, mark_end: end, ..self })
            }
            Err(_) if rules == Rules::Ours => Some(State { marked: upto, mark_end: 0, ..self }),
            Err(_) => None,
        }
    }

    fn release(self) -> Option<State> {
        let says_more = self.marked > self.released && self.mark_end <= self.durable;
        says_more.then_some(State { released: self.marked, ..self })
    }

    fn watermark(self) -> Option<State> {
        let place = geometry().place_watermark(&self.at()).ok()?;
        Some(State { tail: place.end.0, ..self })
    }

    /// The process dies and the next one takes the ring over; it knows of no seal, and releases
    /// what the newest mark says.
    fn process_dies(self) -> State {
        let released = self.marked.min(self.durable);
        State { sealed: self.durable, released, marked: released, ..self }
    }

    /// The machine dies: the ring is filled again with what the device has.
    fn machine_dies(self) -> State {
        let marked = if self.mark_end <= self.durable { self.marked } else { self.released };
        let (tail, sealed) = (self.durable, self.durable);
        State { tail, sealed, released: marked, marked, mark_end: 0, ..self }
    }

    /// Where the reader may end a window: after little, or with all there is.
    fn windows(&self) -> [u64; 2] {
        let little = Lsn(self.released + 1).align_up(STEP).0;
        [little.min(self.durable), self.durable]
    }

    fn nexts(self, rules: Rules) -> impl Iterator<Item = State> {
        let appends = PAYLOADS.into_iter().filter_map(move |bytes| self.append(bytes));
        let marks = self.windows().into_iter().filter_map(move |upto| self.mark(upto, rules));
        let others = [self.drain(), self.release(), self.watermark()].into_iter().flatten();
        let deaths = [self.process_dies(), self.machine_dies()];
        appends.chain(marks).chain(others).chain(deaths).map(State::canonical)
    }

    fn drained(mut self) -> State {
        for _ in 0..DRAINS_MAX {
            let Some(next) = self.drain() else { return self };
            self = next;
        }
        panic!("drains without end: {self:?}");
    }

    /// With users stopped and the shortest windows: whether a bounded number of steps makes room
    /// for the largest frame.
    fn can_be_emptied(self, rules: Rules) -> bool {
        let mut state = self;
        for _ in 0..2 * RING / STEP {
            if state.durable == state.tail && state.append(PAYLOADS[2]).is_some() {
                return true;
            }
            state = state.drained();
            let upto = state.windows()[0];
            let marked = if upto > state.marked { state.mark(upto, rules) } else { Some(state) };
            let Some(marked) = marked else { return false };
            state = marked.drained().release().unwrap_or(marked);
        }
        false
    }
}

/// Walks through all states. Returns how many there are, and the shortest way to one from which the
/// ring cannot be emptied.
fn explore(rules: Rules) -> (usize, Option<u32>) {
    let mut seen = HashMap::from([(State::NEW, 0u32)]);
    let mut ahead = VecDeque::from([State::NEW]);
    while let Some(state) = ahead.pop_front() {
        let steps = seen[&state];
        assert!(geometry().can_drain(&state.at()), "cannot become durable: {state:?}");
        if !state.can_be_emptied(rules) {
            return (seen.len(), Some(steps));
        }
        for next in state.nexts(rules) {
            seen.entry(next).or_insert_with(|| {
                ahead.push_back(next);
                steps + 1
            });
        }
    }
    (seen.len(), None)
}

#[test]
fn from_every_state_the_ring_can_be_emptied() {
    let (states, stuck) = explore(Rules::Ours);
    assert_eq!(stuck, None, "steps to a ring that is stuck");
    assert!(states > 10_000, "only {states} states: too little was tried");
}

/// The check must notice a log that says marks in the ring alone, however little they give.
#[test]
fn canary_marks_in_the_ring_alone_get_it_stuck() {
    let (states, stuck) = explore(Rules::RingAlone);
    assert!(stuck.is_some(), "not noticed in {states} states");
}

//! Where frames are placed: never across a span, never over what is still needed.

extern crate std;

mod emptied;

use super::*;
use crate::frame::{FRAME_ALIGN, pad_payload_bytes};

const SEGMENT: u64 = 64 << 10;
const RING: u64 = 2 * SEGMENT;

fn geometry() -> Geometry {
    Geometry::new(RING, SEGMENT).expect("two segments")
}

fn empty_at(tail: Lsn) -> Occupancy {
    Occupancy { released: tail, durable: tail, tail, dirty_bytes_max: u64::MAX }
}

/// SplitMix64, as everywhere.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn sizes_that_do_not_fit_together_are_no_geometry() {
    for (ring, segment) in [(SEGMENT, SEGMENT), (3 * SEGMENT, SEGMENT), (RING, 4096), (RING, 0)] {
        assert_eq!(Geometry::new(ring, segment), None, "{ring} {segment}");
    }
    assert!(Geometry::new(1 << 63, 1 << 30).is_some());
}

#[test]
fn the_largest_frame_fits_an_empty_ring_wherever_its_tail_is() {
    let geometry = geometry();
    for tail in (0..RING).step_by(FRAME_ALIGN as usize) {
        // A frame never ends where its block has less than a header left.
        let rest = Lsn(tail).align_up(BLOCK_BYTES).since(Lsn(tail));
        if rest > 0 && rest < HEADER_BYTES {
            continue;
        }
        let place = geometry.place(&empty_at(Lsn(tail)), geometry.payload_bytes_max());
        assert!(place.is_ok(), "{tail}: {place:?}");
    }
}

#[test]
fn a_payload_that_is_too_large_is_told_from_one_that_has_to_wait() {
    let geometry = geometry();
    let most = geometry.payload_bytes_max();
    let at = empty_at(Lsn(0));
    assert_eq!(geometry.place(&at, most + 1), Err(Refusal::TooLarge));
    assert_eq!(geometry.place(&at, u64::MAX), Err(Refusal::TooLarge));
    let full = Occupancy { tail: Lsn(RING - RESERVE_BYTES), ..at };
    assert_eq!(geometry.place(&full, 100), Err(Refusal::Full));
    let dirty = Occupancy { tail: Lsn(8192), dirty_bytes_max: 8192, ..at };
    assert_eq!(geometry.place(&dirty, 100), Err(Refusal::OverBound));
    let clean = Occupancy { durable: Lsn(8192), ..Occupancy { dirty_bytes_max: 0, ..dirty } };
    assert!(geometry.place(&clean, 100).is_ok());
}

/// A ring under random appends, marks, seals, deaths and releases.
struct Ring {
    geometry: Geometry,
    at: Occupancy,
    /// The last seal, as the living process remembers it.
    sealed: Lsn,
    /// Marks of the reader since the last release.
    marks: u32,
}

impl Ring {
    fn act(&mut self, state: &mut u64) {
        match random(state) % 12 {
            0 => self.drain(),
            1 => {
                self.mark();
                self.drain();
                self.at.released = self.at.durable;
                self.marks = 0;
            }
            2 => self.sealed = self.at.durable, // the process died; so says the next one
            3 | 4 => self.take(self.geometry.place_watermark(&self.at)),
            _ => self.take(self.geometry.place(&self.at, random(state) % 5000)),
        }
        if self.marks == 0 {
            let place = self.geometry.place_mark(&self.at, u64::MAX);
            assert!(place.is_ok(), "who gives much back can mark");
        }
    }

    fn mark(&mut self) {
        self.take(self.geometry.place_mark(&self.at, u64::MAX));
        self.marks += 1;
    }

    fn take(&mut self, place: Result<Place, Refusal>) {
        let Ok(place) = place else { return };
        check_place(&self.geometry, &self.at, place);
        self.at.tail = place.end;
    }

    fn drain(&mut self) {
        if let Some(end) = self.geometry.seal(&self.at, self.sealed) {
            assert!(end.get() <= self.at.released.get() + RING, "a seal always has room");
            let pad = pad_payload_bytes(self.at.tail, end);
            assert_eq!(frame_end(self.at.tail, pad), end);
            self.at.tail = end;
            self.sealed = end;
        }
        self.at.durable = self.at.tail.min(self.geometry.span_end(self.at.durable));
        assert!(self.at.durable.is_aligned(BLOCK_BYTES));
    }
}

#[test]
fn whatever_is_placed_keeps_to_spans_and_leaves_room_for_seals_and_the_readers_mark() {
    for seed in 0..400 {
        let mut state = seed;
        let at = Occupancy { dirty_bytes_max: 1 << 20, ..empty_at(Lsn(0)) };
        let mut ring = Ring { geometry: geometry(), at, sealed: Lsn(0), marks: 0 };
        for _ in 0..500 {
            ring.act(&mut state);
        }
    }
}

fn check_place(geometry: &Geometry, at: &Occupancy, place: Place) {
    if place.lsn != at.tail {
        assert!(place.lsn.is_aligned(geometry.span_bytes()));
        assert!(place.lsn.since(at.tail) >= HEADER_BYTES, "a pad fits");
    }
    assert!(place.end <= geometry.span_end(place.lsn), "no frame crosses a span");
    assert!(place.end.get() <= at.released.get() + RING, "nothing unread is overwritten");
    assert_eq!(geometry.segment_of(place.lsn), place.lsn.get() / SEGMENT);
    assert!(geometry.segment_start(geometry.segment_of(place.lsn)) <= place.lsn);
}

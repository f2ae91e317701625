extern crate std;

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

/// Random appends, marks, seals and releases keep every rule of the layout.
#[test]
fn whatever_is_placed_keeps_to_spans_and_leaves_room_for_a_seal() {
    let geometry = geometry();
    for seed in 0..200 {
        let mut state = seed;
        let mut at = Occupancy { dirty_bytes_max: 1 << 20, ..empty_at(Lsn(0)) };
        let mut sealed = true;
        for _ in 0..500 {
            let place = match random(&mut state) % 8 {
                0 => geometry.place_mark(&at),
                1 => {
                    seal(&geometry, &mut at, &mut sealed);
                    continue;
                }
                2 => {
                    at.released = at.durable;
                    continue;
                }
                _ => geometry.place(&at, random(&mut state) % 5000),
            };
            let Ok(place) = place else { continue };
            check_place(&geometry, &at, place);
            at.tail = place.end;
            sealed = false;
        }
    }
}

fn seal(geometry: &Geometry, at: &mut Occupancy, sealed: &mut bool) {
    if !*sealed && !at.tail.is_aligned(geometry.span_bytes()) {
        let end = geometry.seal_end(at.tail);
        assert!(geometry.fits(at, end), "a seal always has room");
        let pad = pad_payload_bytes(at.tail, end);
        assert_eq!(frame_end(at.tail, pad), end);
        at.tail = end;
    }
    assert!(at.tail.is_aligned(BLOCK_BYTES));
    at.durable = at.tail;
    *sealed = true;
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

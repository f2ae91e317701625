//! What a dead process can leave in a region, and what of it is believed.

use super::*;
use crate::frame::Kind;

const SEGMENT: u64 = 64 << 10;

fn geometry() -> Geometry {
    Geometry::new(2 * SEGMENT, SEGMENT).expect("two segments")
}

fn header(lsn: u64, payload_bytes: u32, generation: u32) -> FrameHeader {
    FrameHeader {
        lsn: Lsn(lsn),
        durable: Lsn(0),
        payload_bytes,
        payload_check: 0,
        generation,
        kind: Kind::Data,
        flags: 0,
        records: 1,
        utc_ns: 0,
    }
}

#[test]
fn each_rule_of_the_marks_is_checked() {
    let check =
        |released, durable, tail| check_marks(&geometry(), Lsn(released), Lsn(durable), Lsn(tail));
    assert_eq!(check(8, 4096, 4200), Ok(()));
    assert_eq!(check(4096, 4096, 4096 + 2 * SEGMENT), Ok(()));
    assert_eq!(check(4, 4096, 4200), Err(MarksFault::Alignment));
    assert_eq!(check(8, 4104, 4200), Err(MarksFault::Alignment));
    assert_eq!(check(8, 4096, 4201), Err(MarksFault::Alignment));
    assert_eq!(check(8192, 4096, 8192), Err(MarksFault::Order));
    assert_eq!(check(0, 4096, 4088), Err(MarksFault::Order));
    assert_eq!(check(0, 4096, 2 * SEGMENT + 8), Err(MarksFault::Capacity));
}

#[test]
fn a_walk_goes_from_frame_to_frame_and_stops_at_its_end() {
    let mut walk = Walk::new(geometry(), Lsn(0), Lsn(208));
    walk.step(&header(0, 48, 1));
    assert_eq!(walk.at(), Some(Lsn(96)));
    walk.step(&header(96, 64, 2));
    assert_eq!(walk.at(), None);
}

#[test]
fn a_frame_elsewhere_older_or_too_long_does_not_fit_a_walk() {
    let mut walk = Walk::new(geometry(), Lsn(0), Lsn(208));
    walk.step(&header(0, 48, 2));
    assert!(walk.fits(&header(96, 64, 2)));
    assert!(!walk.fits(&header(104, 64, 2)));
    assert!(!walk.fits(&header(96, 64, 1)));
    assert!(!walk.fits(&header(96, 72, 2)));
    assert!(!walk.fits(&header(96, u32::MAX, 2)));
}

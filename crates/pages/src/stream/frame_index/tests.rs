//! Records are found in their frames.

use super::*;

/// Frames of ten records' bytes each, 100 bytes apart in the log.
fn places() -> FrameIndex {
    let frame = |at: u64| FramePlace {
        first: Rsn(at * 10),
        end: Rsn(at * 10 + 10),
        lsn: Lsn(at * 100),
        lsn_end: Lsn(at * 100 + 80),
        utc_ns: 0,
    };
    FrameIndex::new((1..4).map(frame).collect(), Rsn(40))
}

#[test]
fn each_record_is_in_its_frame() {
    let places = places();
    let before = |upto| places.with_byte_before(Rsn(upto)).map(|place| place.first.get());
    assert_eq!([10, 11, 20, 21, 40].map(before), [10, 10, 10, 20, 30].map(Some));
    assert_eq!((before(41), FrameIndex::default().with_byte_before(Rsn(1))), (None, None));
    let start = |from| places.start_of(Rsn(from)).map(Lsn::get);
    assert_eq!([5, 10, 19, 20, 39, 40].map(start), [100, 100, 100, 200, 300, 380].map(Some));
    assert_eq!(FrameIndex::default().start_of(Rsn(1)), None);
}

#[test]
fn a_record_is_durable_when_its_frame_is() {
    let places = places();
    let durable = |lsn| places.durable(Lsn(lsn)).map(Rsn::get);
    assert_eq!(
        [100, 179, 180, 279, 380, 1000].map(durable),
        [None, None, Some(20), Some(20), Some(40), Some(40)]
    );
}

#[test]
fn frames_that_are_forgotten_are_found_no_more() {
    let mut places = places();
    places.forget_below(Lsn(200));
    assert_eq!(places.with_byte_before(Rsn(15)).map(|place| place.first), Some(Rsn(20)));
    assert_eq!(places.first(), Some(Rsn(20)));
    places.forget_below(Lsn(1000));
    assert_eq!((places.first(), places.start_of(Rsn(40))), (None, None));
}

#[test]
#[should_panic(expected = "frames follow one another")]
fn a_gap_is_our_own_mistake() {
    let mut places = places();
    let place = places.with_byte_before(Rsn(40)).expect("it is there");
    places.push(FramePlace { first: Rsn(41), end: Rsn(50), ..place });
}

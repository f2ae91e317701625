//! A frame is read as this store's, or refused by name.

use super::*;
use crate::stream::record::What;
use crate::stream::rsn::Slot;

fn tag() -> Tag {
    Tag::of(b"a store in tests")
}

fn payload() -> Vec<u8> {
    let mut payload = Framed::head(Rsn(500), tag()).to_vec();
    What::Commit(Slot(1)).put(Rsn(500), &mut payload);
    What::Commit(Slot(2)).put(Rsn(503), &mut payload);
    payload
}

#[test]
fn records_of_a_frame_stand_where_its_head_says() {
    let payload = payload();
    let frame = Framed::parse(&payload, tag()).expect("it is ours");
    let found: Vec<_> = frame.records().map(|record| record.expect("it is whole")).collect();
    assert_eq!((found[0].rsn, found[1].rsn, found[1].end), (Rsn(500), Rsn(503), Rsn(506)));
    assert_eq!((frame.first(), frame.end(), frame.bytes()), (Rsn(500), Rsn(506), &payload[16..]));
}

#[test]
fn a_frame_that_does_not_begin_where_the_last_one_ended_is_a_gap() {
    let payload = payload();
    let frame = Framed::parse(&payload, tag()).expect("it is ours");
    assert_eq!(frame.follows(Rsn(500)), Ok(()));
    for end in [Rsn(499), Rsn(501)] {
        assert_eq!(frame.follows(end), Err(FrameFault::Gap { end, first: Rsn(500) }));
    }
}

#[test]
fn a_frame_of_another_store_or_version_and_none_at_all_are_refused() {
    let payload = payload();
    let changed = |at: usize, byte: u8| {
        let mut payload = payload.clone();
        payload[at] = byte;
        Framed::parse(&payload, tag()).map(|_| ())
    };
    let foreign = Framed::parse(&payload, Tag::of(b"another in tests")).map(|_| ());
    assert_eq!(foreign, Err(FrameFault::Foreign));
    assert_eq!(changed(12, 2), Err(FrameFault::OtherVersion { found: 2, known: 1 }));
    assert_eq!(changed(15, 1), Err(FrameFault::Head));
    for bytes in 0..=FRAME_HEAD_BYTES {
        assert_eq!(Framed::parse(&payload[..bytes], tag()), Err(FrameFault::Head));
    }
    for first in [Rsn(7), Rsn(u64::MAX)] {
        let payload = [&Framed::head(first, tag())[..], b"record"].concat();
        assert_eq!(Framed::parse(&payload, tag()), Err(FrameFault::Head));
    }
}

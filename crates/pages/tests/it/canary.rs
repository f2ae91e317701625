//! The checker of frames refuses what it must.

use crate::support::{Found, frames, groups, new_world, put};

/// Two frames: one of two groups, one of a group of three records.
fn sample() -> Vec<Found> {
    let world = new_world(1);
    for (number, records) in [(1, 1), (2, 2), (3, 3)] {
        put(&world.stream, number, records, 0).expect("it fits");
        if number != 1 {
            world.stream.flush().expect("there is room");
        }
    }
    let sample = frames(&*world.log);
    assert_eq!((sample.len(), groups(&sample).expect("it is whole").len()), (2, 3));
    sample
}

#[test]
fn a_lost_frame_is_noticed() {
    let mut sample = sample();
    sample[0].place.end = sample[0].place.first;
    let said = groups(&sample).expect_err("records are missing");
    assert!(said.contains("are missing"), "{said}");
}

#[test]
fn a_group_that_ends_with_its_frame_too_early_or_begins_too_late_is_noticed() {
    let sample = sample();
    let record_bytes = sample[1].bytes.len() / 3;
    let with = |bytes: &[u8]| {
        let mut sample = sample.clone();
        sample[1].bytes = bytes.to_vec();
        groups(&sample).expect_err("a group is not whole")
    };
    let said = with(&sample[1].bytes[..2 * record_bytes]);
    assert!(said.contains("cut by a frame's end"), "{said}");
    let said = with(&sample[1].bytes[record_bytes..]);
    assert!(said.contains("cut before its record 1"), "{said}");
    let said = with(&sample[1].bytes[1..]);
    assert!(said.contains("frame at"), "{said}");
}

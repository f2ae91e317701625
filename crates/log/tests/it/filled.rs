//! Frames whose payload is written once their place is known.

use std::panic::{AssertUnwindSafe, catch_unwind};

use holdfast_io::fake::Mood;
use holdfast_log::{AppendError, Contents, FLAG_COMPRESSED, FLAG_SEALED, Log, Lsn};

use crate::support::{new_log, open_with, region};

const SEALED: Contents = Contents { records: 7, flags: FLAG_SEALED };

/// Appends a frame that says where it is, and in which generation.
fn append_place(log: &Log) -> (Lsn, u32) {
    let mut told = (Lsn(0), 0);
    let fill = &mut |lsn: Lsn, generation: u32, into: &mut [u8]| {
        into[..8].copy_from_slice(&lsn.get().to_le_bytes());
        into[8..].copy_from_slice(&generation.to_le_bytes());
        told = (lsn, generation);
    };
    let appended = log.append_filled(SEALED, 12, fill).expect("there is room");
    assert_eq!(appended.lsn, told.0);
    told
}

#[test]
fn a_payload_knows_its_place_and_comes_back_with_its_flags() {
    let (files, _region, log) = new_log(1);
    for before in [1, 4000, 30_000] {
        log.append(1, &[&vec![1; before]]).expect("there is room");
        let (lsn, generation) = append_place(&log);
        let frames = log.frames(lsn, log.marks().tail);
        let frame = frames.iter().next().expect("it was just appended");
        assert_eq!((frame.header.flags, frame.header.records), (FLAG_SEALED, 7));
        assert_eq!(frame.header.generation, generation);
        assert_eq!(
            frame.payload,
            [&lsn.get().to_le_bytes()[..], &generation.to_le_bytes()].concat()
        );
    }
    let plain = Contents { records: 1, flags: FLAG_COMPRESSED };
    log.append_filled(plain, 0, &mut |_, _, _| ()).expect("nothing is a payload, too");
    log.close().expect("a sound disk");
    drop(log);
    let (_, recovery) = open_with(&files, region()).expect("it is whole");
    assert_eq!(recovery.released, Lsn(0));
}

#[test]
fn a_position_that_is_written_again_has_another_generation() {
    let (mut files, _region, log) = new_log(2);
    let mut before = append_place(&log);
    drop(log);
    for _ in 0..5 {
        files = files.after_power_cut_in(Mood::LoseAll, 1);
        let (log, _) = open_with(&files, region()).expect("what was lost was never durable");
        let again = append_place(&log);
        assert!(again.1 > before.1, "{again:?} after {before:?}");
        before = again;
    }
}

#[test]
fn what_does_not_fit_is_not_filled_and_a_panic_leaves_nothing() {
    let (_files, _region, log) = new_log(3);
    let most = log.payload_bytes_max();
    let refused = log.append_filled(SEALED, most + 1, &mut |_, _, _| panic!("it does not fit"));
    assert!(matches!(refused, Err(AppendError::TooLarge { .. })), "{refused:?}");
    let before = log.marks().tail;
    let fill = AssertUnwindSafe(|| {
        log.append_filled(SEALED, 9, &mut |_, _, _| panic!("after it was begun")).map(drop)
    });
    assert!(catch_unwind(fill).is_err());
    assert_eq!(log.marks().tail, before);
    append_place(&log);
}

//! What is taken is a prefix that ends where a group does.

use super::*;
use crate::stream::rsn::Slot;

/// Three bytes each.
const RECORD: What<'static> = What::Commit(Slot(1));
const BYTES_MAX: u64 = 12;

fn stage() -> AppendBuffer {
    AppendBuffer::new(Rsn(100), BYTES_MAX)
}

/// Puts a group of so many records.
fn put(stage: &AppendBuffer, records: usize) -> Result<Rsn, TooLarge> {
    stage.append(&mut |group| {
        for _ in 0..records {
            group.put(&RECORD);
        }
    })
}

/// Where the frames begin and end that all that can be taken goes into.
fn frames(stage: &AppendBuffer) -> Vec<(u64, u64)> {
    let (mut batch, mut frames) = (FlushBatch::default(), Vec::new());
    stage.take(&mut batch);
    while let Some(Cut { first, end, groups, bytes }) = batch.cut(BYTES_MAX) {
        assert_eq!(bytes.len() as u64, end.since(first));
        frames.push((first.get(), end.get()));
        batch.pass(groups, end);
    }
    assert!(batch.is_empty() && batch.bytes.is_empty());
    frames
}

#[test]
fn groups_share_a_frame_as_long_as_they_fit_and_are_never_cut() {
    let stage = stage();
    for records in [1, 2, 1, 3, 4, 1] {
        put(&stage, records).expect("it fits");
    }
    assert_eq!(frames(&stage), [(100, 112), (112, 121), (121, 133), (133, 136)]);
    assert_eq!((frames(&stage), stage.next()), (vec![], Rsn(136)));
    put(&stage, 1).expect("it fits");
    assert_eq!(frames(&stage), [(136, 139)]);
}

#[test]
fn a_group_of_nothing_is_nothing_and_one_too_large_leaves_nothing() {
    let stage = stage();
    assert_eq!(put(&stage, 0), Ok(Rsn(100)));
    assert_eq!(put(&stage, 5), Err(TooLarge { bytes: 15, bytes_max: BYTES_MAX }));
    assert_eq!((frames(&stage), stage.next()), (vec![], Rsn(100)));
    assert_eq!(put(&stage, 4), Ok(Rsn(112)));
    assert_eq!(frames(&stage), [(100, 112)]);
}

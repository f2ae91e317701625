//! Reading from the newest frame to the oldest.

use holdfast_log::{BackCursor, CursorError, Lsn};

use crate::device::{ON_DEVICE, append, new_log, rest};
use crate::support::Put;

fn all(cursor: &mut BackCursor) -> Vec<Put> {
    let mut found = Vec::new();
    while let Some(frame) = cursor.next_frame().expect("nothing is damaged") {
        found.push(Put::of(&frame));
    }
    found
}

#[test]
fn what_is_read_backwards_is_what_is_read_forwards() {
    let (_files, log) = new_log(1, ON_DEVICE);
    append(&log, 0..300);
    log.commit(log.marks().tail).unwrap();
    let puts = rest(&mut log.cursor(log.first()));
    for from in [300, 299, 150, 1, 0] {
        let lsn = puts.get(from).map_or(log.marks().durable, |put| put.lsn);
        let mut found = all(&mut log.back_cursor(lsn));
        found.reverse();
        assert!(found == puts[..from], "from {from}");
    }
    assert_eq!(all(&mut log.back_cursor(Lsn(u64::MAX))).len(), 300, "from what is durable");
}

#[test]
fn it_ends_at_the_first_frame_that_is_needed() {
    let (_files, log) = new_log(2, ON_DEVICE);
    let puts = append(&log, 0..100);
    log.commit(log.marks().tail).unwrap();
    log.mark(puts[60].end).unwrap();
    assert_eq!(all(&mut log.back_cursor(puts[99].end)).len(), 39);
}

#[test]
fn damage_ends_it_and_so_does_a_beginning_amid_a_frame() {
    let (files, log) = new_log(3, ON_DEVICE);
    let puts = append(&log, 0..20);
    log.commit(log.marks().tail).unwrap();
    let amid = log.back_cursor(puts[5].lsn.advance(8)).next_frame().map(|_| ());
    assert!(matches!(amid, Err(CursorError::Damaged { .. })), "{amid:?}");
    // Position p lies at byte 4096 + p of the first file.
    files.flip_bit("segment-00000000".as_ref(), (4096 + puts[7].lsn.0 + 50) * 8).unwrap();
    let damaged = log.back_cursor(puts[9].end).next_frame().map(|_| ());
    let told = matches!(damaged, Err(CursorError::Damaged { at }) if at == puts[7].lsn);
    assert!(told, "{damaged:?}");
    assert_eq!(all(&mut log.back_cursor(puts[7].lsn)).len(), 7, "what lies before is not hidden");
}

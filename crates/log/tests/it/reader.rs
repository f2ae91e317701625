//! A log as its reader uses it, through the trait.

use std::sync::Arc;

use holdfast_log::{CommitLog, Log, Lsn, NoteError, ReadError, words};

use crate::support::{new_log, open_shared, payload};

/// Appends frames of these payload lengths. Returns where each starts, and the end.
fn fill(log: &dyn CommitLog, lengths: &[usize]) -> Vec<Lsn> {
    let mut starts = Vec::new();
    for (number, bytes) in lengths.iter().enumerate() {
        let appended = log.append(1, &[&payload(number as u64, *bytes)]).expect("there is room");
        starts.push(appended.lsn);
    }
    starts.push(log.marks().tail);
    starts
}

/// What is read until as many frames as wanted have been seen.
fn read(log: &dyn CommitLog, from: Lsn, to: Lsn, most: usize) -> Result<Vec<Lsn>, ReadError> {
    let mut seen = Vec::new();
    log.read(from, to, &mut |frame| {
        seen.push(frame.header.lsn);
        seen.len() < most
    })?;
    Ok(seen)
}

fn release(log: &dyn CommitLog, upto: Lsn) {
    log.commit(log.marks().tail).expect("a sound disk");
    log.mark(upto).expect("marks have room");
    log.release(upto);
}

#[test]
fn frames_of_data_are_read_in_order_from_boundary_to_boundary_until_somebody_has_enough() {
    let (_files, _region, log) = new_log(1);
    let starts = fill(&log, &[100, 20_000, 8, 30_000]);
    release(&log, starts[0]);
    let more = fill(&log, &[70]);
    let tail = CommitLog::marks(&log).tail;
    let all = [&starts[..4], &more[..1]].concat();
    assert_eq!(read(&log, starts[0], tail, 9).expect("all is there"), all, "no marks, no pads");
    assert_eq!(read(&log, starts[1], starts[3], 9).expect("all is there"), starts[1..3]);
    assert_eq!(read(&log, starts[0], tail, 2).expect("all is there"), starts[..2]);
    assert_eq!(read(&log, tail, tail, 9).expect("nothing is asked for"), []);
}

#[test]
fn positions_that_the_ring_does_not_have_are_told_and_end_nobody() {
    let (_files, _region, log) = new_log(1);
    let starts = fill(&log, &[100, 200, 300]);
    let tail = log.marks().tail;
    release(&log, starts[1]);
    let outside = |result| matches!(result, Err(ReadError::Outside { .. }));
    assert!(outside(read(&log, starts[0], tail, 9)), "released");
    assert!(outside(read(&log, starts[1], Lsn(1 << 40), 9)), "not published");
    let copy = |lsn, bytes| CommitLog::copy_bytes(&log, lsn, &mut vec![0; bytes]);
    assert!(matches!(copy(starts[0], 8), Err(ReadError::Outside { .. })), "released");
    assert!(matches!(copy(Lsn(u64::MAX - 4), 8), Err(ReadError::Outside { .. })), "nowhere");
    assert!(matches!(copy(starts[1], 1 << 21), Err(ReadError::Outside { .. })), "too much");
    for from in [starts[1].advance(8), starts[2].advance(48)] {
        let found = read(&log, from, tail, 9);
        assert!(matches!(found, Err(ReadError::Boundary(lsn)) if lsn == from), "{found:?}");
    }
    let cut = read(&log, starts[1], starts[2].advance(8), 9);
    assert!(matches!(cut, Err(ReadError::Boundary(lsn)) if lsn == starts[2]), "{cut:?}");
}

#[test]
fn words_and_notes_are_there_for_the_next_reader() {
    let (files, region, log) = new_log(1);
    let [first, last] = [words::READER.start, words::READER.end - 1];
    log.set_word(first, 7).expect("in this process");
    log.add_to_word(last, 5);
    log.add_to_word(last, 5);
    log.raise_word(last, 9);
    log.note(b"one").expect("there is room");
    log.note(b"two").expect("there is room");
    drop(log);
    let (log, _) = open_shared(&files, &region).expect("the region survived");
    let log: Arc<dyn CommitLog> = Arc::new(log);
    assert_eq!(log.word(first).expect("in this process"), 7);
    assert_eq!(log.word(last).expect("in this process"), 10);
    assert_eq!(log.notes().expect("whole"), [b"one", b"two"]);
    log.replace_notes(&mut [b"three".to_vec()].into_iter()).expect("there is room");
    assert_eq!(log.notes().expect("whole"), [b"three"]);
}

#[test]
fn notes_that_do_not_fit_leave_those_that_do() {
    let (_files, _region, log) = new_log(1);
    log.note(b"kept").expect("there is room");
    assert!(matches!(log.note(&[1; 9000]), Err(NoteError::Full)));
    let more = log.replace_notes(&mut (0..9).map(|_| vec![1; 1000]));
    assert!(matches!(more, Err(NoteError::Full)), "{more:?}");
    assert_eq!(log.notes().expect("whole"), [b"kept"]);
}

#[test]
#[should_panic(expected = "is not the reader's")]
fn the_logs_own_words_are_not_the_readers() {
    let (_files, _region, log) = new_log(1);
    let log: &Log = &log;
    let _ = CommitLog::word(log, words::POISON);
}

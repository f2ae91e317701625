//! Long logs are read ahead, and nobody can tell by what is read.

use std::sync::Arc;
use std::time::Duration;

use holdfast_io::fake::Random;
use holdfast_log::{CheckVerdict, CursorError, Log, LogConfig, Lsn, OpenError, Scanned};

use crate::device::{ON_DEVICE, new_log, one, open, read, read_on, rest};
use crate::support::{Put, payload, replay, seeds};

/// More than is read before a thread is started, in many spans.
const LONG_BYTES: u64 = 7 << 20;

fn long_log(seed: u64) -> (holdfast_io::fake::FakeFiles, Arc<Log>, Vec<Put>) {
    let (files, log) = new_log(seed, ON_DEVICE);
    let mut puts: Vec<Put> = Vec::new();
    while log.marks().tail.0 < LONG_BYTES {
        puts.push(one(&log, puts.len() as u64).expect("the disk is sound"));
    }
    log.commit(log.marks().tail).expect("the disk is sound");
    (files, log, puts)
}

#[test]
fn a_long_log_comes_back_whole_forwards_and_backwards_and_from_its_middle() {
    let (files, log, puts) = long_log(1);
    assert!(rest(&mut log.cursor(log.first())) == puts);
    let middle = puts.len() / 3;
    assert!(rest(&mut log.cursor(puts[middle].lsn)) == puts[middle..]);
    let mut back = log.back_cursor(Lsn(u64::MAX));
    for put in puts.iter().rev() {
        assert_eq!(back.next_frame().unwrap().unwrap().header.lsn, put.lsn);
    }
    let mut left_early = log.cursor(log.first());
    while left_early.position().0 < LONG_BYTES * 3 / 4 {
        left_early.next_frame().unwrap();
    }
    drop(left_early);
    log.close().unwrap();
    drop(log);
    assert_eq!(Log::verify(&files, &mut |_| {}).unwrap().verdict, CheckVerdict::Clean);
}

#[test]
fn damage_in_what_was_read_ahead_is_reported_where_it_is() {
    let (files, log, puts) = long_log(2);
    let hit = &puts[puts.len() * 5 / 6];
    // Segments of 64 KiB, made in order: position p lies in file p / 64 KiB.
    let (file, offset) = (hit.lsn.0 >> 16, hit.lsn.0 & 0xffff);
    files.flip_bit(format!("segment-{file:08}").as_ref(), (4096 + offset + 50) * 8).unwrap();
    let mut cursor = log.cursor(log.first());
    let end = loop {
        match cursor.next_frame() {
            Ok(Some(_)) => {}
            end => break end.map(|_| ()),
        }
    };
    assert!(matches!(end, Err(CursorError::Damaged { at }) if at == hit.lsn), "{end:?}");
    log.close().unwrap();
    drop(log);
    let verdict = Log::verify(&files, &mut |_| {}).unwrap().verdict;
    assert!(matches!(verdict, CheckVerdict::Corrupt { from, .. } if from == hit.lsn));
    // An open that reads only the end does not see it; one that reads everything does.
    open(&files, ON_DEVICE).unwrap();
    let whole = LogConfig { scan: Scanned::Whole, ..ON_DEVICE };
    let opened = open(&files, whole).map(|_| ());
    assert!(
        matches!(opened, Err(OpenError::Corrupt { from, .. }) if from == hit.lsn),
        "{opened:?}"
    );
}

/// Large enough for frames of which a piece that is read ahead holds a part.
const LARGE: LogConfig =
    LogConfig { segment_bytes: 4 << 20, dirty_bytes_max: 4 << 20, ..ON_DEVICE };

/// One of any length: most are short, some longer than all that is read at once.
fn any_length(random: &mut Random) -> u64 {
    let most = match random.below(64) {
        0 => 2 << 20,
        1..4 => 700_000,
        4..16 => 80_000,
        _ => 5_000,
    };
    random.below(most - 48)
}

#[test]
fn frames_of_any_length_come_back_over_the_borders_of_what_is_read_ahead() {
    for seed in seeds(6) {
        let replay = replay("frames_of_any_length", seed);
        let random = &mut Random::new(seed);
        let (files, log) = new_log(seed, LARGE);
        let mut puts: Vec<Put> = Vec::new();
        while log.marks().tail.0 < 12 << 20 {
            let payload = payload(puts.len() as u64, any_length(random) as usize);
            log.wait_for_room(payload.len() as u64, Duration::MAX).unwrap();
            let at = log.append(1, &[&payload]).unwrap();
            puts.push(Put { lsn: at.lsn, end: at.end, payload });
        }
        log.commit(log.marks().tail).unwrap();
        for first in [0, random.below(puts.len() as u64) as usize] {
            let (found, error) = read_on(&mut log.cursor(puts[first].lsn));
            assert!(error.is_none() && found == puts[first..], "{error:?}; {replay}");
        }
        let hit = random.below(puts.len() as u64) as usize;
        let (file, offset) = (puts[hit].lsn.0 >> 22, puts[hit].lsn.0 & 0x3f_ffff);
        files.flip_bit(format!("segment-{file:08}").as_ref(), (4096 + offset + 30) * 8).unwrap();
        let (found, error) = read(&log);
        let at = puts[hit].lsn;
        assert!(matches!(error, Some(CursorError::Damaged { at: told }) if told == at), "{replay}");
        assert!(found == puts[..hit], "{replay}");
    }
}

#[test]
fn an_open_reads_the_end_however_long_the_log_is() {
    let (files, log, puts) = long_log(3);
    drop(log);
    let (log, recovery) = open(&files, ON_DEVICE).unwrap();
    assert!(recovery.bytes_scanned < LONG_BYTES / 8, "{}", recovery.bytes_scanned);
    assert_eq!(recovery.released, Lsn(0));
    log.commit(log.marks().tail).unwrap();
    assert!(rest(&mut log.cursor(log.first())) == puts);
}

#[test]
fn a_checkpoint_in_what_an_open_does_not_read_is_known_all_the_same() {
    let (files, log, puts) = long_log(4);
    let needed = puts[puts.len() / 2].end;
    log.mark(needed).unwrap();
    let mut number = puts.len() as u64;
    while log.marks().tail.0 < LONG_BYTES + (1 << 20) {
        one(&log, number).unwrap();
        number += 1;
    }
    log.commit(log.marks().tail).unwrap();
    drop(log);
    let (_log, recovery) = open(&files, ON_DEVICE).unwrap();
    assert!(recovery.bytes_scanned < LONG_BYTES / 8, "{}", recovery.bytes_scanned);
    assert_eq!(recovery.released, needed);
}

#[test]
fn an_open_reads_the_end_also_of_a_log_whose_segments_were_all_made_at_once() {
    let files = holdfast_io::fake::FakeFiles::new(5);
    let config = LogConfig { segments: 64, ..ON_DEVICE };
    Log::create(&files, crate::support::IDENTITY, &config).unwrap();
    let (log, _) = open(&files, ON_DEVICE).unwrap();
    let mut puts = 0;
    while log.marks().tail.0 < 40 * config.segment_bytes {
        one(&log, puts).expect("the disk is sound");
        log.commit(log.marks().tail).unwrap();
        while log.prepare().unwrap() {}
        puts += 1;
    }
    drop(log);
    let (_log, recovery) = open(&files, ON_DEVICE).unwrap();
    let needed_bytes = 26 * config.segment_bytes; // what lies behind the end is looked at, too
    assert!(recovery.bytes_scanned < needed_bytes, "{}", recovery.bytes_scanned);
}

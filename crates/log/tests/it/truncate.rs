//! The end of a log is cut off, and never comes back.

use std::sync::Arc;

use holdfast_io::Files;
use holdfast_io::fake::{FakeFiles, Random};
use holdfast_log::{CheckVerdict, CursorError, Log, LogConfig, Lsn, TruncateError};

use crate::device::{ON_DEVICE, append, at_every_power_cut, made, new_log, one, open, rest};
use crate::support::Put;
use crate::survivor::SHORT;

/// A log with this many frames, all durable.
fn filled(seed: u64, count: u64) -> (FakeFiles, Arc<Log>, Vec<Put>) {
    let (files, log) = new_log(seed, ON_DEVICE);
    let puts = append(&log, 0..count);
    log.commit(log.marks().tail).expect("the disk is sound");
    (files, log, puts)
}

fn contents(log: &Arc<Log>) -> Vec<Put> {
    rest(&mut log.cursor(log.first()))
}

#[test]
fn what_is_cut_off_is_gone_and_what_comes_later_is_behind_it() {
    let (files, log, mut puts) = filled(1, 120);
    let end = log.marks().durable;
    log.truncate_after(puts[70].end).unwrap();
    puts.truncate(71);
    assert!(contents(&log) == puts);
    assert_eq!(log.marks().durable, end, "positions are not used again");
    puts.extend(append(&log, 500..510));
    log.commit(log.marks().tail).unwrap();
    assert!(contents(&log) == puts);
    log.close().unwrap();
    drop(log);
    assert_eq!(Log::verify(&files, &mut |_| {}).unwrap().verdict, CheckVerdict::Clean);
    let (log, _) = open(&files, ON_DEVICE).unwrap();
    assert!(contents(&log) == puts);
}

#[test]
fn the_bytes_that_were_cut_off_are_nowhere_on_the_device() {
    let (files, log, puts) = filled(2, 60);
    log.truncate_after(puts[9].end).unwrap();
    let mut all = Vec::new();
    for entry in files.read_dir("".as_ref()).unwrap() {
        let name = String::from_utf8(entry.name).unwrap();
        let file = files.open(name.as_ref(), holdfast_io::OpenHow::default()).unwrap();
        let mut bytes = vec![0; file.metadata().unwrap().size_bytes as usize];
        file.read_full_at(&mut bytes, 0).unwrap();
        all.push(bytes);
    }
    let is_there = |put: &Put| {
        let piece = &put.payload[put.payload.len() - 8..];
        all.iter().any(|bytes| bytes.windows(8).any(|window| window == piece))
    };
    assert!(puts[..10].iter().all(is_there));
    assert!(!puts[10..].iter().any(is_there));
}

#[test]
fn only_a_boundary_between_the_checkpoint_and_the_end_can_be_the_new_end() {
    let (_files, log, puts) = filled(3, 40);
    let amid = log.truncate_after(puts[5].lsn.advance(8));
    assert!(matches!(amid, Err(TruncateError::NoBoundary { .. })), "{amid:?}");
    let beyond = log.truncate_after(log.marks().tail.advance(4096));
    assert!(matches!(beyond, Err(TruncateError::NoBoundary { .. })), "{beyond:?}");
    log.mark(puts[10].end).unwrap();
    let below = log.truncate_after(puts[9].end);
    let first = puts[10].end;
    let told = matches!(below, Err(TruncateError::Truncated { first: at }) if at == first);
    assert!(told, "{below:?}");
    log.truncate_after(log.marks().tail).unwrap();
    assert!(contents(&log) == puts[11..]);
    log.truncate_after(first).unwrap();
    assert_eq!(contents(&log), []);
}

#[test]
fn a_damaged_end_can_be_cut_off_before_the_damage() {
    let (files, log, puts) = filled(4, 20);
    // Position p lies at byte 4096 + p of the first file.
    files.flip_bit("segment-00000000".as_ref(), (4096 + puts[7].lsn.0 + 60) * 8).unwrap();
    let behind = log.truncate_after(puts[8].end);
    assert!(matches!(behind, Err(TruncateError::NoBoundary { .. })), "{behind:?}");
    log.truncate_after(puts[6].end).unwrap();
    assert!(contents(&log) == puts[..7]);
}

#[test]
fn the_checkpoint_outlives_the_cut_of_its_mark() {
    let (files, log, puts) = filled(5, 40);
    log.mark(puts[20].end).unwrap();
    log.commit(log.marks().tail).unwrap();
    log.truncate_after(puts[30].end).unwrap();
    drop(log);
    let (log, recovery) = open(&files, ON_DEVICE).unwrap();
    assert_eq!(recovery.released, puts[20].end);
    assert!(contents(&log) == puts[21..31]);
}

#[test]
fn readers_beyond_a_cut_are_told_and_the_others_go_on() {
    let (_files, log, mut puts) = filled(6, 100);
    let (mut at_end, mut before, mut untouched) =
        (log.cursor(puts[99].lsn), log.cursor(Lsn(0)), log.cursor(puts[50].end));
    assert_eq!(rest(&mut at_end).len(), 1);
    before.next_frame().unwrap();
    log.truncate_after(puts[50].end).unwrap();
    puts.truncate(51);
    puts.extend(append(&log, 300..320));
    log.commit(log.marks().tail).unwrap();
    let told = at_end.next_frame();
    let from = puts[50].end;
    assert!(matches!(told, Err(CursorError::Cut { from: at }) if at == from), "{told:?}");
    assert!(rest(&mut untouched) == puts[51..]);
    let mut given = Vec::new();
    let end = loop {
        match before.next_frame() {
            Ok(Some(frame)) => given.push(frame.header.lsn),
            end => break end.map(|_| ()),
        }
    };
    // What it had in memory may be given, but nothing behind it as if nothing had happened.
    let same = given.iter().zip(&puts[1..]).all(|(lsn, put)| *lsn == put.lsn);
    let told = matches!(end, Err(CursorError::Cut { .. }));
    assert!(told || (same && given.len() == puts.len() - 1), "{end:?} after {given:?}");
}

#[test]
fn nobody_who_appends_or_reads_meanwhile_sees_anything_but_whole_frames() {
    let (_files, log, puts) = filled(7, 50);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| append(&log, 1000..1200));
        let reader = scope.spawn(|| {
            for _ in 0..20 {
                let mut cursor = log.cursor(Lsn(0));
                loop {
                    match cursor.next_frame() {
                        Ok(Some(_)) => {}
                        Ok(None) | Err(CursorError::Cut { .. }) => break,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        });
        for keep in [40, 30, 20, 10] {
            log.truncate_after(puts[keep].end).unwrap();
        }
        reader.join().unwrap();
        let written = writer.join().unwrap();
        log.commit(log.marks().tail).unwrap();
        let found = contents(&log);
        assert!(found[..11] == puts[..11]);
        assert!(written.ends_with(&found[11..]), "those appended later stay, in order");
    });
}

/// What is known of a log that is cut now and then.
#[derive(Clone, Default)]
struct Known {
    /// What must be there.
    sure: Vec<Put>,
    /// What must be there if the cut that was under way was made.
    cut_to: Option<usize>,
    next: u64,
}

/// Opens, compares, appends and cuts; None if the power goes.
fn life(
    files: &FakeFiles,
    config: LogConfig,
    known: &mut Known,
    random: &mut Random,
    steps: u64,
) -> Option<()> {
    let log = made(files, config)?;
    log.commit(log.marks().tail).ok()?;
    let found = contents(&log);
    let kept = known.cut_to.take().filter(|kept| found.len() == *kept && *kept < known.sure.len());
    let sure = &known.sure[..kept.unwrap_or(known.sure.len())];
    assert!(found.starts_with(sure), "lost: {} of {}", found.len(), sure.len());
    assert!(kept.is_none() || found == sure, "half a cut");
    assert!(found.len() <= sure.len() + 1, "what was cut off is back");
    known.sure = found;
    for _ in 0..steps {
        let put = one(&log, known.next)?;
        known.next += 1;
        log.commit(put.end).ok()?;
        known.sure.push(put);
        if random.chance(15) {
            let kept = 1 + random.below(known.sure.len() as u64) as usize;
            known.cut_to = Some(kept);
            log.truncate_after(known.sure[kept - 1].end).ok()?;
            (known.cut_to, _) = (None, known.sure.truncate(kept));
        }
    }
    log.close().ok()
}

/// Lives through a power cut at every I/O, and what any of them may leave: so many images.
fn every_power_cut(config: LogConfig, seed: u64) -> u64 {
    at_every_power_cut(
        seed,
        |files, known: &mut Known| life(files, config, known, &mut Random::new(seed), 30),
        |image, known, cut| {
            if let Ok(checked) = Log::verify(image, &mut |_| {}) {
                let corrupt = matches!(checked.verdict, CheckVerdict::Corrupt { .. });
                assert!(!corrupt, "cut {cut}: {:?}", checked.verdict);
            }
            life(image, config, known, &mut Random::new(cut), 4)
        },
    )
}

#[test]
fn a_cut_is_made_or_not_made_after_a_power_cut_at_any_io() {
    println!("{}", crate::support::replay("a_cut_is_made_or_not", 8));
    let images = every_power_cut(ON_DEVICE, 8);
    println!("{images} images of a log that is cut");
}

#[test]
fn a_cut_of_a_log_with_parity_is_made_or_not_made_after_a_power_cut_at_any_io() {
    println!("{}", crate::support::replay("a_cut_of_a_log_with_parity", 8));
    let images = every_power_cut(SHORT, 8);
    println!("{images} images of a log that is cut");
}

#[test]
#[should_panic(expected = "is back")]
fn a_frame_that_came_back_would_be_noticed() {
    let (files, log, puts) = filled(9, 12);
    drop(log);
    let mut known = Known { sure: puts[..5].to_vec(), ..Known::default() };
    life(&files, ON_DEVICE, &mut known, &mut Random::new(1), 0);
}

#[test]
#[should_panic(expected = "lost")]
fn a_frame_cut_off_too_much_would_be_noticed() {
    let (files, log, puts) = filled(10, 12);
    log.truncate_after(puts[8].end).unwrap();
    drop(log);
    let mut known = Known { sure: puts, ..Known::default() };
    life(&files, ON_DEVICE, &mut known, &mut Random::new(1), 0);
}

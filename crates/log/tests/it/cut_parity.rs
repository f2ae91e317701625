//! The end of a log with parity is cut off: what stays can be given back all the while, and what
//! went is not.

use std::sync::Arc;

use holdfast_io::Files;
use holdfast_io::fake::FakeFiles;
use holdfast_log::{CursorError, Log, LogConfig, Lsn, Policy};

use crate::device::{MOODS, fill, new_log, one, open, read};
use crate::support::Put;
use crate::survivor::{BLOCK, FRAMES_OFFSET, SHORT, STRIPED, copy, place, spoil, with};

/// A log of some stripes, with parity of the last one, too.
fn filled(config: LogConfig, bytes: u64) -> (FakeFiles, Arc<Log>, Vec<Put>) {
    let (files, log) = new_log(1, config);
    let puts = fill(&log, 0, bytes);
    while log.prepare().expect("the disk is sound") {
        log.commit(log.marks().tail).expect("the disk is sound");
    }
    (files, log, puts)
}

/// The block that a position lies in, as the number of a block of the log.
fn block_of(lsn: Lsn) -> u64 {
    lsn.get() / BLOCK
}

/// Damages blocks of the log, opens it to be repaired, and returns what is there.
fn spoiled(files: &FakeFiles, config: LogConfig, block: u64, blocks: u64) -> Vec<Put> {
    let image = copy(files);
    let (name, offset) = place(config, Lsn(block * BLOCK));
    spoil(&image, &name, offset, blocks * BLOCK);
    let (log, _) = open(&image, with(config, Policy::Repair)).expect("parity gives it back");
    let (found, error) = read(&log);
    assert!(error.is_none(), "block {block}: {error:?}");
    found
}

#[test]
fn every_stripe_is_sound_after_a_cut_and_gives_back_what_stayed_and_never_what_went() {
    for (config, bytes) in [(STRIPED, 900 << 10), (SHORT, 200 << 10)] {
        for keep in [3, 25, 100] {
            let (files, log, mut puts) = filled(config, bytes);
            let Some(last) = puts.get(keep) else { continue };
            let (from, to) = (last.end, log.marks().durable);
            log.truncate_after(from).unwrap();
            puts.truncate(keep + 1);
            let parity = Log::verify(&files, &mut |_| {}).unwrap().parity.unwrap();
            assert_eq!(parity.sound, parity.stripes, "{parity:?}");
            for block in (0..block_of(to)).step_by(5).chain([block_of(from)]) {
                assert!(spoiled(&files, config, block, 1) == puts, "block {block}");
            }
            puts.extend(fill(&log, 5_000, to.get() + (100 << 10)));
            log.close().unwrap();
            drop(log);
            let parity = Log::verify(&files, &mut |_| {}).unwrap().parity.unwrap();
            assert_eq!(parity.sound, parity.stripes, "{parity:?}");
            for block in (block_of(to) - 20..block_of(to) + 20).chain([block_of(from)]) {
                assert!(spoiled(&files, config, block, 1) == puts, "block {block}");
            }
        }
    }
}

#[test]
fn what_stays_is_given_back_whenever_the_power_goes_during_a_cut() {
    let cut = |files: &FakeFiles, log: &Arc<Log>, puts: &[Put]| {
        let before = files.operations();
        let outcome = log.truncate_after(puts[40].end);
        (outcome, before, files.operations())
    };
    let (files, log, puts) = filled(STRIPED, 600 << 10);
    let (outcome, before, after) = cut(&files, &log, &puts);
    outcome.unwrap();
    let (from, mut images, mut made) = (block_of(puts[40].end), 0, 0);
    for operation in before + 1..=after {
        let (files, log, puts) = filled(STRIPED, 600 << 10);
        files.cut_power_at(operation);
        cut(&files, &log, &puts).0.expect_err("the power goes");
        drop(log);
        for mood in MOODS {
            let image = files.after_power_cut_in(mood, operation);
            // The whole of the first stripe, also the block that the cut begins in.
            for block in [0, from / 2, from - 1, from, 70] {
                let found = spoiled(&image, STRIPED, block, 1);
                let is_made = found == puts[..41];
                assert!(is_made || found == puts, "{operation} {mood:?} {block}: {}", found.len());
                (images, made) = (images + 1, made + u64::from(is_made));
            }
        }
    }
    assert!(0 < made && made < images, "{made} of {images}");
    println!("{images} damaged images of a log that is being cut, {made} cut");
}

#[test]
fn a_damaged_block_that_the_cut_begins_in_is_mended_first() {
    let (files, log, mut puts) = filled(STRIPED, 300 << 10);
    for block in [2, block_of(puts[20].end)] {
        spoil(&files, "segment-00000000", FRAMES_OFFSET + block * BLOCK, BLOCK);
    }
    log.truncate_after(puts[20].end).unwrap();
    puts.truncate(21);
    let (found, error) = read(&log);
    assert!(found == puts, "{error:?}");
    drop(log);
    let (log, _) = open(&files, with(STRIPED, Policy::Repair)).unwrap();
    assert!(read(&log).0 == puts);
}

#[test]
fn who_appends_or_reads_while_a_log_with_parity_is_cut_goes_on_and_all_stripes_are_sound() {
    let (files, log, puts) = filled(SHORT, 100 << 10);
    spoil(&files, "segment-00000000", FRAMES_OFFSET + BLOCK, BLOCK);
    std::thread::scope(|scope| {
        for thread in 1..4 {
            let log = &log;
            scope.spawn(move || {
                for number in thread * 1_000..thread * 1_000 + 60 {
                    let put = one(log, number).expect("the disk is sound");
                    log.commit(put.end).expect("the disk is sound");
                    let _more = log.prepare().expect("the disk is sound");
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..50 {
                let (found, error) = read(&log);
                assert!(found.starts_with(&puts[..4]), "{error:?}");
                assert!(matches!(error, None | Some(CursorError::Cut { .. })), "{error:?}");
            }
        });
        for keep in (3..18).rev() {
            log.truncate_after(puts[keep].end).unwrap();
        }
    });
    log.close().unwrap();
    let (found, error) = read(&log);
    assert!(found.starts_with(&puts[..4]) && error.is_none(), "{error:?}");
    drop(log);
    let (log, recovery) = open(&files, with(SHORT, Policy::Repair)).unwrap();
    assert!(read(&log).0 == found && recovery.lost.is_none());
    log.close().unwrap();
    let parity = Log::verify(&files, &mut |_| {}).unwrap().parity.unwrap();
    assert_eq!(parity.sound, parity.stripes, "{parity:?}");
    assert!(files.metadata("cut".as_ref()).is_err(), "nothing is left of the cuts");
}

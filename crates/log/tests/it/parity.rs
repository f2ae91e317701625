//! What parity gives back, and what it must not.

use std::path::Path;
use std::sync::Arc;

use holdfast_io::Files;
use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Operation};
use holdfast_log::{Log, LogConfig, Lsn, OpenError, Policy, Verdict};

use crate::device::{MOODS, at_every_power_cut, fill, life, new_log, one, open, read};
use crate::support::{Put, replay, seeds};
use crate::survivor::{
    BLOCK, FRAMES_OFFSET, PLAIN, SHORT, STRIPED, bytes_of, closed, copy, overwrite, spoil,
    spoil_at, with,
};

const FIRST: &str = "segment-00000000";
/// What parity gives back of one stripe.
const BLOCKS: u64 = 5;

/// Damages so many blocks from `block` of the first file on, its header not counted, and opens it
/// to be repaired. What was there must be there then, also on the device.
fn is_mended(files: &FakeFiles, config: LogConfig, puts: &[Put], block: u64, blocks: u64) -> bool {
    let image = copy(files);
    spoil(&image, FIRST, FRAMES_OFFSET + block * BLOCK, blocks * BLOCK);
    let (log, recovery) = match open(&image, with(config, Policy::Repair)) {
        Ok(opened) => opened,
        Err(OpenError::Corrupt { .. }) => return false,
        Err(error) => panic!("block {block}: {error}"),
    };
    let (found, error) = read(&log);
    assert!(found == puts && error.is_none(), "block {block}: {error:?}");
    let frames = FRAMES_OFFSET as usize..(FRAMES_OFFSET + config.segment_bytes) as usize;
    let (is, was) = (bytes_of(&image, FIRST), bytes_of(files, FIRST));
    assert!(is[frames.clone()] == was[frames], "block {block}: not as it was");
    assert_eq!(recovery.verdict, Verdict::Clean);
    let mended: u64 = recovery.mended.iter().map(|part| part.to.since(part.from)).sum();
    assert!(mended <= blocks * BLOCK && mended.is_multiple_of(BLOCK));
    true
}

#[test]
fn any_lost_block_and_any_burst_of_five_is_given_back_wherever_it_is() {
    let mut counts = [0; 2];
    for config in [STRIPED, SHORT] {
        let (files, puts) = closed(config, config.segment_bytes + (40 << 10));
        let blocks = bytes_of(&files, FIRST).len() as u64 / BLOCK - 1;
        for block in 0..blocks {
            for (count, blocks) in counts.iter_mut().zip([1, BLOCKS.min(blocks - block)]) {
                assert!(is_mended(&files, config, &puts, block, blocks), "{blocks} at {block}");
                *count += 1;
            }
        }
    }
    println!("{} lost blocks and {} bursts of {BLOCKS}, all given back", counts[0], counts[1]);
}

/// The canary, too.
#[test]
fn a_burst_of_six_is_too_much_and_nothing_is_changed() {
    let (files, puts) = closed(STRIPED, 600 << 10);
    assert!(!is_mended(&files, STRIPED, &puts, 3, BLOCKS + 1));
    spoil(&files, FIRST, FRAMES_OFFSET + 3 * BLOCK, (BLOCKS + 1) * BLOCK);
    // Another stripe that could be mended.
    spoil(&files, FIRST, FRAMES_OFFSET + 70 * BLOCK, BLOCK);
    let before = files.operations();
    let opened = open(&files, with(STRIPED, Policy::Repair)).map(drop);
    assert!(matches!(opened, Err(OpenError::Corrupt { .. })), "{opened:?}");
    assert_eq!(files.operations(), before);
}

#[test]
fn a_log_without_parity_is_refused_under_the_same_policy() {
    let (files, puts) = closed(PLAIN, 100 << 10);
    assert!(!is_mended(&files, PLAIN, &puts, 3, 1));
}

#[test]
fn a_reader_is_given_back_what_the_device_damaged_and_says_so() {
    let (files, log) = new_log(1, STRIPED);
    let puts = fill(&log, 0, 600 << 10);
    for block in [7, 20, 100] {
        spoil(&files, FIRST, FRAMES_OFFSET + block * BLOCK, 2 * BLOCK);
    }
    assert_eq!(log.mended_blocks(), 0);
    let (found, error) = read(&log);
    assert!(found == puts, "{error:?}");
    assert!(log.mended_blocks() >= 6, "{}", log.mended_blocks());
    spoil(&files, FIRST, FRAMES_OFFSET + 30 * BLOCK, 6 * BLOCK);
    let (found, error) = read(&log);
    assert!(found.len() < puts.len() && puts.starts_with(&found), "{error:?}");
}

#[test]
fn threads_whose_drains_overlap_leave_parity_of_all_that_they_wrote() {
    let (files, log) = new_log(1, STRIPED);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let log = &log;
            scope.spawn(move || {
                for number in thread * 100..thread * 100 + 40 {
                    let put = one(log, number).expect("the disk is sound");
                    log.commit(put.end).expect("the disk is sound");
                }
            });
        }
    });
    log.close().unwrap();
    let (puts, _) = read(&log);
    assert_eq!(puts.len(), 320);
    let parity = Log::verify(&files, &mut |_| {}).unwrap().parity.unwrap();
    assert!(parity.stripes > 3 && parity.sound == parity.stripes, "{parity:?}");
    for block in [0, 30, 63, 64, 100] {
        assert!(is_mended(&files, STRIPED, &puts, block, BLOCKS), "block {block}");
    }
}

#[test]
fn the_last_stripe_is_protected_once_the_log_idles() {
    let (files, log) = new_log(1, STRIPED);
    let puts = fill(&log, 0, 30 << 10);
    let damaged = || {
        let image = copy(&files);
        spoil_at(&image, STRIPED, Lsn(puts[1].lsn.get() & !(BLOCK - 1)), BLOCK);
        open(&image, with(STRIPED, Policy::Repair)).map(|(log, _)| read(&log).0)
    };
    assert!(matches!(damaged(), Err(OpenError::Corrupt { .. })));
    // Some steps for segments, a watermark and the parity; then there is nothing left to do.
    for _ in 0..10 {
        log.prepare().unwrap();
        log.commit(log.marks().tail).unwrap();
    }
    assert!(!log.prepare().unwrap());
    assert!(damaged().unwrap() == puts);
}

#[test]
fn a_block_that_cannot_be_read_is_given_back_too() {
    let (files, puts) = closed(STRIPED, 600 << 10);
    for skip in 0..40 {
        let image = copy(&files);
        // The second hits a block by itself.
        for skip in [skip, skip + 1] {
            image.fail(Fault { operation: Operation::Read, skip, effect: Effect::Errno(EIO) });
        }
        match open(&image, with(STRIPED, Policy::Repair)) {
            Ok((log, _)) => {
                image.forget_faults();
                assert!(read(&log).0 == puts, "read {skip}");
            }
            Err(OpenError::Io(_)) => {}
            Err(error) => panic!("read {skip}: {error}"),
        }
    }
}

/// A log of which a drain that completes a stripe was cut: its parity is there, its frames are not.
fn parity_without_its_frames() -> (FakeFiles, Vec<Put>) {
    let (files, log) = new_log(1, SHORT);
    let puts = fill(&log, 0, 50 << 10);
    let before = copy(&files);
    let more = fill(&log, 1_000, 70 << 10);
    assert!(more.len() > 1);
    let groups_at = FRAMES_OFFSET + SHORT.segment_bytes;
    let groups = bytes_of(&files, FIRST).split_off(groups_at as usize);
    overwrite(&before, FIRST, groups_at, &groups);
    (before, puts)
}

#[test]
fn pitfall_22_parity_never_brings_back_what_was_not_acknowledged() {
    let (files, puts) = parity_without_its_frames();
    let (log, recovery) = open(&files, with(SHORT, Policy::Repair)).unwrap();
    assert_eq!((read(&log).0, recovery.mended), (puts.clone(), vec![]));
    let groups = bytes_of(&files, FIRST).split_off((FRAMES_OFFSET + SHORT.segment_bytes) as usize);
    assert!(groups[5 * BLOCK as usize..].iter().all(|byte| *byte == 0), "it is wiped out");
    // What takes the place of the lost frames is damaged before its stripe is complete.
    let all = [puts.clone(), fill(&log, 2_000, 60 << 10)].concat();
    drop(log);
    let last = all[puts.len()].lsn;
    spoil_at(&files, SHORT, Lsn(last.get() & !(BLOCK - 1)), BLOCK);
    for policy in [Policy::Refuse, Policy::Repair] {
        let opened = open(&files, with(SHORT, policy)).map(drop);
        assert!(matches!(opened, Err(OpenError::Corrupt { .. })), "{opened:?}");
    }
}

#[test]
fn what_was_durable_is_there_after_a_power_cut_at_any_io_with_parity() {
    let mut images = 0;
    let config = with(SHORT, Policy::Repair);
    for seed in seeds(1) {
        println!("{}", replay("after_a_power_cut_at_any_io_with_parity", seed));
        images += at_every_power_cut(
            seed,
            |files, durable: &mut Vec<Put>| life(files, config, durable, 40),
            |image, durable, _| life(image, config, durable, 3),
        );
    }
    println!("{images} images of a log with parity");
}

#[test]
fn power_that_fails_while_a_log_is_repaired_costs_nothing() {
    let (files, puts) = closed(STRIPED, 600 << 10);
    for block in [2, 3, 90] {
        spoil(&files, FIRST, FRAMES_OFFSET + block * BLOCK, BLOCK);
    }
    let config = with(STRIPED, Policy::Repair);
    let before = files.operations();
    open(&copy(&files), config).expect("it can be mended");
    for cut in 1.. {
        let image = copy(&files);
        image.cut_power_at(before.min(image.operations()) + cut);
        let opened = open(&image, config);
        if opened.is_ok() {
            break;
        }
        for mood in MOODS {
            let image = image.after_power_cut_in(mood, cut);
            let (log, _) = open(&image, config).expect("it can still be mended");
            assert!(read(&log).0 == puts, "cut {cut} {mood:?}");
        }
        assert!(cut < 100, "it ends");
    }
}

#[test]
fn a_log_has_the_parity_that_it_was_made_with() {
    let (files, _) = closed(SHORT, 20 << 10);
    let bytes = |files: &FakeFiles| bytes_of(files, FIRST).len() as u64;
    assert_eq!(bytes(&files), FRAMES_OFFSET + SHORT.segment_bytes + 6 * BLOCK);
    drop(open(&files, PLAIN).expect("what an open asks for counts for nothing"));
    let (plain, _) = closed(PLAIN, 20 << 10);
    assert_eq!(bytes(&plain), FRAMES_OFFSET + PLAIN.segment_bytes);
    drop(open(&plain, SHORT).expect("what an open asks for counts for nothing"));
    let (striped, _) = closed(STRIPED, 20 << 10);
    assert_eq!(bytes(&striped), FRAMES_OFFSET + STRIPED.segment_bytes + 2 * 6 * BLOCK);
    let files: Arc<dyn Files> = Arc::new(striped);
    assert!(files.metadata(Path::new("catalogue")).is_ok());
}

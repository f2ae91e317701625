//! A log that is read while somebody else writes it.

use std::sync::Arc;

use holdfast_io::Files;
use holdfast_io::fake::{FakeClock, FakeFiles, Mood, Random};
use holdfast_log::{CursorError, Log, Watch};

use crate::device::{ON_DEVICE, append, fill, new_log, one, open, read, rest};
use crate::support::{IDENTITY, Put, region_of, replay, seeds};
use crate::survivor::{BLOCK, FRAMES_OFFSET, STRIPED, spoil};

fn watch(files: &FakeFiles) -> Watch {
    let files: Arc<dyn Files> = Arc::new(files.clone());
    let region = Arc::new(region_of(IDENTITY, 4096));
    Watch::open(files, region, Arc::new(FakeClock::default())).expect("there is a log")
}

/// Everything that is shown now, from the beginning.
fn shown(watch: &mut Watch) -> Vec<Put> {
    watch.look().expect("the disk is sound");
    rest(&mut watch.log().cursor(watch.log().first()))
}

#[test]
fn a_set_is_shown_once_a_watermark_behind_it_says_that_it_is_durable() {
    let (files, log) = new_log(1, ON_DEVICE);
    let mut watch = watch(&files);
    let first = append(&log, 0..1);
    assert_eq!(shown(&mut watch), [], "in memory");
    log.commit(log.marks().tail).unwrap();
    assert_eq!(shown(&mut watch), [], "on the disk, and nothing says so");
    append(&log, 1..2);
    assert_eq!(shown(&mut watch), []);
    log.commit(log.marks().tail).unwrap();
    assert_eq!(shown(&mut watch), first);
    assert!(!watch.look().unwrap(), "nothing new");
    log.close().unwrap();
    assert_eq!(shown(&mut watch).len(), 2);
}

/// One step of somebody who writes.
fn step(log: &Arc<Log>, puts: &mut Vec<Put>, random: &mut Random) {
    match random.below(100) {
        0..60 => puts.extend(one(log, puts.len() as u64)),
        60..80 => log.commit(log.marks().tail).expect("the disk is sound"),
        80..85 => drop(log.drain().expect("the disk is sound")),
        _ => drop(log.prepare().expect("the disk is sound")),
    }
}

/// What is shown must be the beginning of what was appended, and durable. Returns how much it is.
fn check(files: &FakeFiles, shown: &[Put], puts: &[Put], seed: u64) -> usize {
    assert!(puts.starts_with(shown), "{} of {}", shown.len(), puts.len());
    let image = files.after_power_cut_in(Mood::LoseAll, seed);
    let (log, _) = open(&image, ON_DEVICE).expect("what was durable is there");
    log.commit(log.marks().tail).expect("the disk is sound");
    let kept = rest(&mut log.cursor(log.first()));
    assert!(kept.starts_with(shown), "shown {}, durable {}", shown.len(), kept.len());
    shown.len()
}

#[test]
fn what_is_shown_survives_a_power_cut_at_that_moment_and_nothing_is_changed() {
    let mut looks = 0;
    for seed in seeds(6) {
        println!("{}", replay("what_is_shown_survives", seed));
        let (files, mut log) = new_log(seed, ON_DEVICE);
        let (mut watch, mut random) = (watch(&files), Random::new(seed));
        let (mut puts, mut most) = (Vec::new(), 0);
        for round in 0..300 {
            step(&log, &mut puts, &mut random);
            if round % 100 == 99 {
                log.commit(log.marks().tail).unwrap();
                drop(log);
                (log, _) = open(&files, ON_DEVICE).unwrap();
            }
            if random.chance(20) {
                let before = files.operations();
                let shown = shown(&mut watch);
                assert_eq!(files.operations(), before, "looking changes nothing");
                assert!(shown.len() >= most, "what was shown once is shown again");
                most = check(&files, &shown, &puts, seed);
                looks += 1;
            }
        }
        log.close().unwrap();
        assert!(shown(&mut watch) == puts, "all of a closed log is shown");
    }
    println!("{looks} looks at a log that is being written");
}

#[test]
#[should_panic(expected = "durable")]
fn a_set_that_is_shown_too_early_would_be_noticed() {
    let (files, log) = new_log(2, ON_DEVICE);
    let puts = append(&log, 0..1);
    check(&files, &puts, &puts, 2);
}

#[test]
fn a_reader_that_falls_behind_a_checkpoint_is_told_and_one_that_keeps_up_goes_on() {
    let (files, log) = new_log(3, ON_DEVICE);
    let mut watch = watch(&files);
    let late = watch.log().cursor(watch.log().first());
    let mut reader = watch.log().cursor(watch.log().first());
    let (mut puts, mut seen) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let next = puts.len() as u64;
        puts.extend(append(&log, next..next + 8));
        log.commit(log.marks().tail).unwrap();
        watch.look().unwrap();
        seen.extend(rest(&mut reader));
        log.mark(seen.last().map_or(log.first(), |put: &Put| put.end)).unwrap();
        while log.prepare().unwrap() {}
    }
    log.close().unwrap();
    watch.look().unwrap();
    seen.extend(rest(&mut reader));
    assert!(seen == puts, "{} of {}", seen.len(), puts.len());
    let (mut late, first) = (late, watch.log().first());
    let told = late.next_frame().map(|_| ());
    assert!(matches!(told, Err(CursorError::Truncated { first: at }) if at == first), "{told:?}");
}

#[test]
fn what_the_device_damaged_is_given_back_by_parity_or_named_and_does_not_hide_what_follows() {
    let (files, log) = new_log(4, STRIPED);
    let puts = fill(&log, 0, 700 << 10);
    let mut watch = watch(&files);
    spoil(&files, "segment-00000000", FRAMES_OFFSET + 20 * BLOCK, 2 * BLOCK);
    log.close().unwrap();
    assert!(shown(&mut watch) == puts);
    spoil(&files, "segment-00000000", FRAMES_OFFSET + 30 * BLOCK, 6 * BLOCK);
    watch.look().unwrap();
    let (found, error) = read(watch.log());
    assert!(matches!(error, Some(CursorError::Damaged { .. })), "{error:?}");
    assert!(puts.starts_with(&found) && found.len() < puts.len());
    let last = puts.last().unwrap().lsn;
    assert_eq!(rest(&mut watch.log().cursor(last)).len(), 1);
}

#[test]
fn what_was_cut_off_is_not_shown_and_what_is_appended_later_is() {
    let (files, log) = new_log(6, ON_DEVICE);
    let mut puts = append(&log, 0..60);
    log.commit(log.marks().tail).unwrap();
    let mut watch = watch(&files);
    log.truncate_after(puts[20].end).unwrap();
    puts.truncate(21);
    let found = shown(&mut watch);
    assert!(puts.starts_with(&found), "{} of {}", found.len(), puts.len());
    puts.extend(append(&log, 100..140));
    log.close().unwrap();
    assert!(shown(&mut watch) == puts);
}

#[test]
fn nothing_can_be_appended_to_what_is_watched() {
    let (files, _log) = new_log(5, ON_DEVICE);
    let watch = watch(&files);
    watch.log().append(1, &[b"mine"]).expect_err("it is somebody else's");
    watch.log().close().expect_err("it is somebody else's");
}

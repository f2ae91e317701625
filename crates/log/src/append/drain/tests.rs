//! Flights that overlap, land in any order, and are overtaken by a power cut.

use std::sync::Arc;

use holdfast_io::fake::{FakeClock, FakeFiles, Mood, Random, is_power_cut};
use holdfast_memory::{Medium, Region, RegionSpec};

use super::*;
use crate::config::{LogConfig, Parity, Policy, Retention, Scanned};

const IDENTITY: [u8; 16] = *b"overlapping logs";

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 64 << 10,
        segments: 2,
        dirty_bytes_max: u64::MAX,
        retention: Retention::OnDevice,
        scan: Scanned::Whole,
        parity: Parity::None,
        policy: Policy::Refuse,
    }
}

fn open(files: &FakeFiles) -> Log {
    let spec = RegionSpec { ring_bytes: 256 << 10, roster_bytes: 64, identity: IDENTITY };
    let region = Arc::new(Region::create(&Medium::Private, &spec).expect("memory"));
    let clock = Arc::new(FakeClock::default());
    Log::open(Arc::new(files.clone()), region, clock, config()).expect("it opens").0
}

/// Brings some of a flight's steps to the device: a write without its sync at first, then both.
fn carry(airborne: &Airborne<'_>, through: bool) -> io::Result<()> {
    let Flight { from, to } = airborne.flight;
    let pin = airborne.log.region.pin(from.get());
    let bytes = pin.bytes(from.get(), to.since(from) as usize);
    airborne.segment.write_all(from, bytes)?;
    if through { airborne.segment.sync() } else { Ok(()) }
}

/// One more flight, if one can take off.
fn begin(log: &Log) -> Result<Option<Airborne<'_>>, CommitError> {
    let progress = log.progress();
    if !progress.can_fly(log.marks().tail) {
        return Ok(None);
    }
    let number = log.geometry.segment_of(progress.drain.assigned());
    drop(progress);
    if log.segments.ready(number).is_none() {
        log.prepare_late(number)?;
    }
    let segment = log.segments.ready(number).expect("it was prepared");
    Ok(log.take_off(log.progress(), segment))
}

/// Appends, and keeps several flights under way; returns the ends of what was appended, and what
/// was durable when the power went, if it did.
fn life(files: &FakeFiles, seed: u64) -> (Vec<Lsn>, Lsn, bool) {
    let mut random = Random::new(seed);
    let log = open(files);
    let (mut ends, mut flying) = (vec![log.marks().tail], Vec::new());
    for number in 0..60u64 {
        let payload = vec![number as u8; random.below(6000) as usize];
        let appended = log.append(1, &[&payload]).expect("there is room");
        ends.push(appended.end);
        log.progress().drain.set_depth(4);
        match begin(&log) {
            Ok(airborne) => flying.extend(airborne),
            Err(_) => return (ends, log.marks().durable, true),
        }
        while !flying.is_empty() && random.chance(45) {
            let airborne = flying.remove(random.below(flying.len() as u64) as usize);
            let outcome = carry(&airborne, true);
            if outcome.as_ref().is_err_and(is_power_cut) {
                return (ends, log.marks().durable, true);
            }
            log.land(&airborne, outcome).expect("nothing else fails");
        }
        if flying.iter().any(|airborne| random.chance(30) && carry(airborne, false).is_err()) {
            return (ends, log.marks().durable, true);
        }
    }
    (ends, log.marks().durable, false)
}

fn new_log(seed: u64) -> FakeFiles {
    let files = FakeFiles::new(seed);
    Log::create(&files, IDENTITY, &config()).expect("an empty disk takes a log");
    files
}

#[test]
fn a_power_cut_among_overlapping_flights_leaves_a_prefix_with_all_that_was_durable() {
    let factor: u64 =
        std::env::var("HOLDFAST_SEEDS_FACTOR").map_or(1, |text| text.parse().expect("a number"));
    let (mut images, mut holes) = (0, 0);
    for seed in 0..8 * factor {
        let whole = new_log(seed);
        let before = whole.operations();
        let (_, _, cut) = life(&whole, seed);
        assert!(!cut);
        for at in before + 12..=whole.operations() {
            let files = new_log(seed);
            files.cut_power_at(at);
            let (ends, durable, _) = life(&files, seed);
            for mood in [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter] {
                let image = files.after_power_cut_in(mood, at);
                let log = Arc::new(open(&image));
                let tail = log.marks().tail;
                let kept = ends.iter().filter(|end| **end <= tail).count();
                let replay = "HOLDFAST_SEEDS_FACTOR=1 cargo test -p holdfast-log overlapping";
                assert!(tail >= durable, "seed {seed}, cut {at}, {mood:?}: {replay}");
                let found = count(&log);
                assert_eq!(found, kept - 1, "seed {seed}, cut {at}, {mood:?}: {replay}");
                holes += usize::from(kept < ends.len() && durable < tail);
                images += 1;
            }
        }
    }
    println!("{images} images of overlapping flights, {holes} ended between durable and the tail");
    assert!(images > 2000 && holes > 1000, "{images} images, {holes} of them of use");
}

/// Frames from the beginning to the end, all durable and whole.
fn count(log: &Arc<Log>) -> usize {
    log.commit(log.marks().tail).expect("a sound disk");
    let mut cursor = log.cursor(log.first());
    let mut count = 0;
    while cursor.next_frame().expect("every frame is whole").is_some() {
        count += 1;
    }
    count
}

fn wait_for_sleepers(log: &Log, count: usize) {
    while log.progress().waiters.count() < count {
        std::thread::yield_now();
    }
}

#[test]
fn one_flight_wakes_everybody_who_waits_for_it_however_many_they_are() {
    let log = Arc::new(open(&new_log(2)));
    for sleepers in 1..=40 {
        // Nobody takes off by itself.
        log.progress().gathering = true;
        let (done, heard) = std::sync::mpsc::channel();
        for _ in 0..sleepers {
            let end = log.append(1, &[b"slept on"]).expect("there is room").end;
            let (sleeper, done) = (Arc::clone(&log), done.clone());
            std::thread::spawn(move || done.send(sleeper.commit(end)));
        }
        wait_for_sleepers(&log, sleepers);
        log.progress().gathering = false;
        log.drain().expect("a sound disk");
        for woken in 0..sleepers {
            let answer = heard.recv_timeout(Duration::from_secs(30));
            let answer = answer.unwrap_or_else(|_| panic!("{woken} of {sleepers} are awake"));
            answer.expect("a sound disk");
        }
    }
}

#[test]
fn who_slept_while_another_gathered_is_woken_even_if_that_one_has_nothing_to_write() {
    let log = Arc::new(open(&new_log(1)));
    let gathered = log.append(1, &[b"taken meanwhile"]).expect("there is room").end;
    log.progress().gathering = true;
    log.drain().expect("a sound disk");
    let end = log.append(1, &[b"slept on"]).expect("there is room").end;
    let (done, heard) = std::sync::mpsc::channel();
    let sleeper = Arc::clone(&log);
    std::thread::spawn(move || done.send(sleeper.commit(end)));
    wait_for_sleepers(&log, 1);
    let mut progress = log.progress();
    progress.gathering = false;
    log.lead(progress, gathered).expect("a sound disk");
    let woken = heard.recv_timeout(Duration::from_secs(30)).expect("the sleeper is woken");
    assert!(woken.is_ok() && log.marks().durable >= end);
}

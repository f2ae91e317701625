//! Bits of the ring that turn over while the log is open.
//!
//! A failure names its seed: `HOLDFAST_SEED=7 cargo test -p holdfast-log --test it ring_bits`.

use std::sync::atomic::Ordering;

use holdfast_io::fake::{FakeFiles, Random};
use holdfast_log::{CommitLog, Log, Lsn, ReadError, words};

use crate::damage::FileRegion;
use crate::support::{CONFIG, IDENTITY, open_shared, payload};

/// Bytes of a frame before its payload.
const HEADER_BYTES: usize = 48;

/// What a reader of the ring was given, by where it starts.
fn read(log: &dyn CommitLog, to: Lsn) -> (Vec<(Lsn, Vec<u8>)>, Option<ReadError>) {
    let mut given = Vec::new();
    let outcome = log.read(Lsn(0), to, &mut |frame| {
        given.push((frame.payload_lsn, frame.payload.to_vec()));
        true
    });
    (given, outcome.err())
}

/// One bit of one frame of a log turns over, wherever that is. Whether its reader did without.
fn with_a_bit_turned(seed: u64) -> bool {
    let mut random = Random::new(seed);
    let files = FakeFiles::new(seed);
    Log::create(&files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
    let (place, region) = FileRegion::new(&format!("bits-{seed}"));
    let (log, _) = open_shared(&files, &region).expect("a new log opens");
    let mut frames = Vec::new();
    for number in 0..2 + random.below(9) {
        let bytes = payload(number, 8 + random.below(6000) as usize);
        let appended = log.append(1, &[&bytes]).expect("there is room");
        frames.push((appended.payload, bytes));
        if random.below(3) == 0 {
            log.commit(log.marks().tail).expect("a sound disk");
        }
    }
    let (durable, tail) = (log.marks().durable, log.marks().tail);
    let victim = random.below(frames.len() as u64) as usize;
    let (at, bytes) = &frames[victim];
    let bit = random.below(8 * (HEADER_BYTES + bytes.len()) as u64) as usize;
    place.turn_over(bytes, HEADER_BYTES, bit);
    let (given, error) = read(&log, tail);
    assert_eq!(given[..], frames[..given.len()], "seed {seed}: nothing else is handed out");
    if *at < durable {
        assert!(error.is_none(), "seed {seed}: the disk has it: {error:?}");
        assert_eq!(given.len(), frames.len(), "seed {seed}");
        assert_eq!(
            region.word(words::HEALED).load(Ordering::Relaxed),
            1,
            "seed {seed}: it is told"
        );
        let mut copied = vec![0; bytes.len()];
        CommitLog::copy_bytes(&log, *at, &mut copied).expect("it is there");
        assert_eq!(copied, *bytes, "seed {seed}: as it was appended");
    } else {
        assert!(error.is_some() && given.len() == victim, "seed {seed}: {error:?}");
    }
    *at < durable
}

#[test]
fn a_reader_is_given_what_was_appended_or_hears_where_memory_has_lost_it() {
    let seeds = match std::env::var("HOLDFAST_SEED") {
        Ok(seed) => seed.parse().expect("a number")..seed.parse::<u64>().expect("a number") + 1,
        Err(_) => 0..300,
    };
    let healed = seeds.clone().filter(|seed| with_a_bit_turned(*seed)).count();
    assert!(seeds.end - seeds.start == 1 || (50..250).contains(&healed), "{healed} of 300");
}

#[test]
fn what_memory_has_lost_is_forgotten_once_it_is_released() {
    let files = FakeFiles::new(1);
    Log::create(&files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
    let (place, region) = FileRegion::new("bits-released");
    let (log, _) = open_shared(&files, &region).expect("a new log opens");
    // So often that places in the ring are used again.
    for number in 0..40 {
        let bytes = payload(number, 20_000);
        let appended = log.append(1, &[&bytes]).expect("there is room");
        log.commit(log.marks().tail).expect("a sound disk");
        if number == 3 {
            place.turn_over(&bytes, 0, 77);
        }
        let mut given = Vec::new();
        let read = CommitLog::read(&log, appended.lsn, appended.end, &mut |frame| {
            given.extend_from_slice(frame.payload);
            true
        });
        read.expect("the disk has all of it");
        assert_eq!(given, bytes);
        log.mark(appended.end).expect("marks have room");
        log.release(appended.end);
    }
    assert_eq!(region.word(words::HEALED).load(Ordering::Relaxed), 1);
}

//! Every single bit of 64 KiB of log.

use std::ops::Range;

use holdfast_io::fake::FakeFiles;
use holdfast_log::CheckVerdict;
use holdfast_wal::format::MessagePack;
use holdfast_wal::{Log, OpenError, Options, Scanned};

use crate::support::{SMALL, Work, factor, new_log, open, place, work};

const SEGMENT: &str = "segment-00000000";
/// The bits of the frames in the first segment file, behind its header.
const BITS: Range<u64> = 4096 * 8..(4096 + LOG_BYTES) * 8;
const LOG_BYTES: u64 = 64 << 10;
/// Every how many bits, unless all are asked for.
const STRIDE: u64 = 17;
const THREADS: u64 = 2;
/// Opens read everything.
const WHOLE: Options = SMALL.with_scan(Scanned::Whole);

/// A closed log that fills its first segment, and goes on behind it.
fn full_segment() -> FakeFiles {
    let (files, log) = new_log(1);
    let mut next = 0;
    while log.stat().end.get() <= LOG_BYTES {
        let set: Vec<_> = (next..next + 1 + next % 3).map(work).collect();
        log.append_all(&set).unwrap();
        next += 1;
    }
    log.close().unwrap();
    files
}

/// What the code that would recover the log says with one bit of it turned over.
fn verdict(files: &FakeFiles, bit: u64) -> CheckVerdict {
    files.flip_bit(SEGMENT.as_ref(), bit).unwrap();
    let checked = holdfast_log::Log::verify(files, &mut |_| {}).unwrap().verdict;
    files.flip_bit(SEGMENT.as_ref(), bit).unwrap();
    checked
}

/// How many of these bits are noticed, and how many there are.
fn noticed(bits: impl Iterator<Item = u64>) -> (u64, u64) {
    let files = full_segment();
    assert_eq!(
        holdfast_log::Log::verify(&files, &mut |_| {}).unwrap().verdict,
        CheckVerdict::Clean
    );
    let mut counts = (0, 0);
    for bit in bits {
        let at = bit / 8 - 4096;
        let seen = verdict(&files, bit);
        let here = matches!(seen, CheckVerdict::Corrupt { from, to } if from.get() <= at
            && at < to.get());
        counts = (counts.0 + u64::from(here), counts.1 + 1);
    }
    counts
}

#[test]
fn every_bit_of_64_kib_of_log_that_turns_over_is_noticed_where_it_is() {
    let stride = if factor() >= 8 { 1 } else { STRIDE };
    let (found, all) = std::thread::scope(|scope| {
        let part = |thread| {
            move || {
                noticed(BITS.skip(thread * stride as usize).step_by((stride * THREADS) as usize))
            }
        };
        let threads: Vec<_> =
            (0..THREADS as usize).map(|thread| scope.spawn(part(thread))).collect();
        let counts = threads.into_iter().map(|thread| thread.join().unwrap());
        counts.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1))
    });
    println!("{found} of {all} single bits noticed, of {} in all", BITS.end - BITS.start);
    assert_eq!(found, all);
}

#[test]
fn a_log_with_a_bit_turned_over_is_refused_and_opens_again_when_it_is_restored() {
    let files = full_segment();
    for bit in BITS.step_by(9973) {
        files.flip_bit(SEGMENT.as_ref(), bit).unwrap();
        let opened = Log::<Work, MessagePack>::open_at(place(&files), &WHOLE).map(drop);
        assert!(matches!(opened, Err(OpenError::Corrupt { .. })), "bit {bit}: {opened:?}");
        files.flip_bit(SEGMENT.as_ref(), bit).unwrap();
    }
    open(&files).unwrap();
}

#[test]
fn every_bit_of_the_label_counts() {
    let (files, log) = new_log(1);
    drop(log);
    for bit in 0..(60 + "paper.record".len() as u64 + "message-pack".len() as u64) * 8 {
        files.flip_bit("label".as_ref(), bit).unwrap();
        let opened = open(&files).map(drop);
        let told = matches!(opened, Err(OpenError::Label(_) | OpenError::OtherVersion { .. }));
        assert!(told, "bit {bit}: {opened:?}");
        files.flip_bit("label".as_ref(), bit).unwrap();
    }
    open(&files).unwrap();
}

//! Every single bit of 64 KiB of log.

use std::ops::Range;

use holdfast_io::fake::{FakeFiles, Mood};
use holdfast_wal::format::MessagePack;
use holdfast_wal::{CheckVerdict, Damage, Log, OpenError, Options, Parity, Scanned, Verified};

use crate::support::{
    SMALL, Work, factor, label, make_old, new_log, open, place, records, segments, work, works,
};

const SEGMENT: &str = "segment-00000000";
/// The bits of the frames in the first segment file, behind its header.
const BITS: Range<u64> = FRAMES_OFFSET * 8..(FRAMES_OFFSET + LOG_BYTES) * 8;
const FRAMES_OFFSET: u64 = 4096;
const LOG_BYTES: u64 = 64 << 10;
/// Every how many bits, unless all are asked for.
const STRIDE: u64 = 17;
const PARITY_STRIDE: u64 = 509;
const THREADS: u64 = 2;
/// Opens read everything.
const WHOLE: Options = SMALL.with_scan(Scanned::Whole);

/// With parity.
const STRIPED: Options = SMALL.with_parity(Parity::TenPercent);

/// A closed log that fills its first segment, and goes on behind it.
fn full_segment(options: &Options) -> FakeFiles {
    let files = FakeFiles::new(1);
    Log::<Work, MessagePack>::create_at(&place(&files), options).unwrap();
    let (log, _) = Log::<Work, MessagePack>::open_at(place(&files), options).unwrap();
    let mut next = 0;
    while log.stat().end.get() <= LOG_BYTES {
        let set: Vec<_> = (next..next + 1 + next % 3).map(work).collect();
        log.append_all(&set).unwrap();
        next += 1;
    }
    log.close().unwrap();
    files
}

/// What the code that would recover the log says.
fn verified(files: &FakeFiles) -> Verified {
    holdfast_log::Log::verify(files, &mut |_| {}).unwrap()
}

/// Turns over every so manieth bit, one at a time: how often `judge` agrees, who knows the byte,
/// and how many there are.
fn count(
    options: &Options,
    bits: &Range<u64>,
    stride: u64,
    judge: fn(&Verified, u64) -> bool,
) -> (u64, u64) {
    let part = |thread: u64| {
        let files = full_segment(options);
        let sound = verified(&files);
        assert!(sound.verdict == CheckVerdict::Clean && !judge(&sound, 0), "nothing is wrong yet");
        let (mut agreed, mut all) = (0, 0);
        for bit in
            bits.clone().skip((thread * stride) as usize).step_by((stride * THREADS) as usize)
        {
            files.flip_bit(SEGMENT.as_ref(), bit).unwrap();
            agreed += u64::from(judge(&verified(&files), bit / 8 - FRAMES_OFFSET));
            all += 1;
            files.flip_bit(SEGMENT.as_ref(), bit).unwrap();
        }
        (agreed, all)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || part(thread))).collect();
        let counts = threads.into_iter().map(|thread| thread.join().unwrap());
        counts.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1))
    })
}

fn is_noticed(found: &Verified, byte: u64) -> bool {
    matches!(found.verdict, CheckVerdict::Corrupt { from, to }
        if from.get() <= byte && byte < to.get())
}

fn is_given_back(found: &Verified, byte: u64) -> bool {
    let block = byte / FRAMES_OFFSET * FRAMES_OFFSET;
    let here = |damage: &Damage| damage.mendable && damage.stretch.from.get() == block;
    found.damaged.len() == 1 && found.damaged.iter().all(here)
}

fn is_of_parity_alone(found: &Verified, _: u64) -> bool {
    let parity = found.parity.unwrap();
    found.verdict == CheckVerdict::Clean && parity.sound + 1 == parity.stripes
}

#[test]
fn every_bit_of_64_kib_of_log_that_turns_over_is_noticed_where_it_is() {
    let stride = if factor() >= 8 { 1 } else { STRIDE };
    let (found, all) = count(&SMALL, &BITS, stride, is_noticed);
    println!("{found} of {all} single bits noticed, of {} in all", BITS.end - BITS.start);
    assert_eq!(found, all);
}

#[test]
fn every_bit_of_64_kib_of_log_that_turns_over_is_given_back_by_parity() {
    let stride = if factor() >= 8 { 1 } else { PARITY_STRIDE };
    let (found, all) = count(&STRIPED, &BITS, stride, is_given_back);
    println!("{found} of {all} single bits given back, of {} in all", BITS.end - BITS.start);
    assert_eq!(found, all);
}

#[test]
fn every_bit_of_the_parity_that_turns_over_is_noticed_and_costs_no_record() {
    let bits = BITS.end..BITS.end + 6 * 4096 * 8;
    let (found, all) = count(&STRIPED, &bits, PARITY_STRIDE, is_of_parity_alone);
    println!("{found} of {all} single bits of parity noticed");
    assert_eq!(found, all);
}

#[test]
fn a_log_with_a_bit_turned_over_is_refused_and_opens_again_when_it_is_restored() {
    let files = full_segment(&SMALL);
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
    make_old(&files);
    for bit in 0..(60 + "paper.record".len() as u64 + "message-pack".len() as u64) * 8 {
        files.flip_bit("label".as_ref(), bit).unwrap();
        let opened = open(&files).map(drop);
        let told = matches!(opened, Err(OpenError::Label(_) | OpenError::OtherVersion { .. }));
        assert!(told, "bit {bit}: {opened:?}");
        files.flip_bit("label".as_ref(), bit).unwrap();
    }
    drop(open(&files).unwrap());
}

#[test]
fn every_bit_of_a_label_in_a_segment_that_turns_over_is_made_good_by_the_others() {
    let (files, log) = new_log(1);
    log.append_all(&works(0..3)).unwrap();
    log.close().unwrap();
    drop(log);
    let bits = 0..(56 + label(&files).len() as u64) * 8;
    for name in segments(&files) {
        for bit in bits.clone().step_by(3) {
            let image = files.after_power_cut_in(Mood::KeepAll, 0);
            image.flip_bit(name.as_ref(), bit).unwrap();
            assert!(records(&open(&image).unwrap().0).unwrap() == works(0..3), "{name}, bit {bit}");
        }
    }
}

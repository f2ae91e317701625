//! What a change of segments costs those who wait for a set.
//!
//! Promise: the same number of synced sets, once through many segments, which are made, or freed by
//! a checkpoint and used again, while the sets go on, and once within one segment.
//! Never: leaves out a set that took long.

use std::time::Instant;

use holdfast_bench_common::place::Place;
use holdfast_wal::format::MessagePack;
use holdfast_wal::{Background, Log, Options};

use crate::Failure;
use crate::effort::{Effort, ROLLS};
use crate::record::{Format, Record};
use crate::set::Source;

/// Bytes of a segment that is soon full,
const SMALL_BYTES: u64 = 4 << 20;

/// and of one that takes all of them.
const LARGE_BYTES: u64 = 512 << 20;

/// Segments that a log keeps ready, so that none is made while there is nothing to roll.
const SEGMENTS: u32 = 3;

const _: () = assert!(ROLLS as u64 * SMALL_BYTES < LARGE_BYTES);

/// Microseconds that all but one of a thousand sets took at most.
pub(crate) struct Outcome {
    pub(crate) rolls_us: f64,
    pub(crate) none_us: f64,
}

pub(crate) fn measure(effort: &Effort, whole: &Place) -> Result<Outcome, Failure> {
    let rolled = times_ns(SMALL_BYTES, whole, |log, _| {
        log.stat().end.get() < u64::from(effort.rolls) * SMALL_BYTES
    })?;
    let sets = rolled.len();
    let unrolled = times_ns(LARGE_BYTES, whole, |_, done| done < sets)?;
    Ok(Outcome { rolls_us: late_us(rolled), none_us: late_us(unrolled) })
}

fn times_ns(
    segment_bytes: u64,
    whole: &Place,
    goes_on: impl Fn(&Log<Record, MessagePack>, usize) -> bool,
) -> Result<Vec<u64>, Failure> {
    let place = whole.folder("rolls")?;
    let options = Options::new().with_segment_bytes(segment_bytes).with_segments(SEGMENTS);
    let options = options.with_background(Background::Prepare);
    let (log, _) = Log::<Record, MessagePack>::open_or_create(place.path(), &options)?;
    place.settle()?;
    let (mut source, mut times) = (Source::new(0, Format::MessagePack), Vec::new());
    while goes_on(&log, times.len()) {
        let set = source.next_set(1);
        let began = Instant::now();
        log.append_all(set.records())?.wait()?;
        times.push(began.elapsed().as_nanos() as u64);
    }
    log.close()?;
    Ok(times)
}

fn late_us(mut times_ns: Vec<u64>) -> f64 {
    times_ns.sort_unstable();
    let rank = (times_ns.len() * 999).div_ceil(1000).max(1) - 1;
    times_ns.get(rank).map_or(0.0, |time| *time as f64 / 1000.0)
}

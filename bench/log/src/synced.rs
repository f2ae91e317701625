//! Sets that are durable before the next one of their thread.
//!
//! Promise: all threads start together, warmed up; everything acknowledged is read back and
//! compared after the clock has stopped; a run without enough flushes is refused.
//! Never: lets a thread have two sets under way.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use holdfast_bench_common::clock::Clock;
use holdfast_bench_common::flushes::{self, Device, Flushes};
use holdfast_bench_common::place::Place;
use holdfast_figures::percentile;

use crate::Failure;
use crate::effort::Effort;
use crate::peers::{Durability, Kind, Peer, Terms, Writer};
use crate::record::Format;
use crate::set::Source;
use crate::tally::Tally;

/// Who appends, and how much at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) threads: u32,
    pub(crate) set: usize,
    pub(crate) format: Format,
}

/// What a run came to.
pub(crate) struct Outcome {
    pub(crate) records_per_s: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) cpu_us_per_record: f64,
    /// The same for the whole machine.
    pub(crate) machine_us_per_record: f64,
    /// Flushes of a set, and how many were under way at a time. Nothing if the device's flushes
    /// cannot be counted.
    pub(crate) flushes: Option<(f64, f64)>,
}

/// Measures one log under one load.
pub(crate) fn measure(
    kind: &Kind,
    load: Load,
    effort: &Effort,
    whole: &Place,
    device: Option<&Device>,
) -> Result<Outcome, Failure> {
    let place = whole.folder("synced")?;
    let terms =
        Terms { durability: Durability::Synced, format: load.format, bytes: effort.synced_bytes() };
    let peer = (kind.open)(place.path(), &terms)?;
    let mut hands: Vec<Hand> =
        (0..load.threads).map(|writer| Hand::new(writer, load.format)).collect();
    append_all(&*peer, &mut hands, load.set, effort.warm_up)?;
    hands.iter_mut().for_each(|hand| hand.times_ns.clear());
    place.settle()?;

    let before = device.map(Device::look).transpose()?;
    let clock = Clock::start();
    append_all(&*peer, &mut hands, load.set, effort.synced)?;
    let (wall_s, cpu_us, machine_us) = (clock.wall_s(), clock.process_us(), clock.machine_us());
    let after = device.map(Device::look).transpose()?;

    peer.close()?;
    check(kind, load.format, &place, &hands)?;
    let mut times: Vec<u64> = hands.into_iter().flat_map(|hand| hand.times_ns).collect();
    times.sort_unstable();
    let sets = times.len() as u64;
    let flushes = before.zip(after).map(|(before, after)| after.since(before));
    flushes
        .map_or(Ok(()), |flushes| flushes::check(flushes.count, (sets, "sets"), load.threads))?;
    let shares = |it: Flushes| (it.count as f64 / sets as f64, it.took_ms as f64 / 1e3 / wall_s);
    let records = sets as f64 * load.set as f64;
    Ok(Outcome {
        records_per_s: records / wall_s,
        p50_us: percentile(&times, 50) as f64 / 1000.0,
        p99_us: percentile(&times, 99) as f64 / 1000.0,
        cpu_us_per_record: cpu_us / records,
        machine_us_per_record: machine_us / records,
        flushes: flushes.map(shares),
    })
}

/// A thread's records and how long each of its sets took.
struct Hand {
    source: Source,
    times_ns: Vec<u64>,
}

impl Hand {
    fn new(writer: u32, format: Format) -> Hand {
        Hand { source: Source::new(writer, format), times_ns: Vec::with_capacity(1 << 14) }
    }

    fn append(&mut self, writer: &mut dyn Writer, set: usize) -> Result<(), Failure> {
        let began = Instant::now();
        writer.append(&mut self.source.next_set(set))?;
        self.times_ns.push(began.elapsed().as_nanos() as u64);
        Ok(())
    }
}

/// Each thread appends for so long.
fn append_all(
    peer: &dyn Peer,
    hands: &mut [Hand],
    set: usize,
    time: Duration,
) -> Result<(), Failure> {
    let start = &Barrier::new(hands.len());
    std::thread::scope(|scope| {
        let begin = |hand| scope.spawn(move || append_for(peer, hand, start, set, time));
        let threads: Vec<_> = hands.iter_mut().map(begin).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread died")?)
    })
}

/// What one thread does once all are there.
fn append_for(
    peer: &dyn Peer,
    hand: &mut Hand,
    start: &Barrier,
    set: usize,
    time: Duration,
) -> Result<(), Failure> {
    let mut writer = peer.writer();
    start.wait();
    let began = Instant::now();
    while began.elapsed() < time {
        hand.append(&mut *writer, set)?;
    }
    Ok(())
}

/// Reads everything back and compares.
fn check(kind: &Kind, format: Format, place: &Place, hands: &[Hand]) -> Result<(), Failure> {
    let Some(read) = kind.read else { return Ok(()) };
    let mut tally = Tally::of_content(format);
    read(place.path(), &mut tally)?;
    tally.expect(&hands.iter().map(|hand| hand.source.given()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;

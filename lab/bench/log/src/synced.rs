//! Sets that are durable before the next one of their thread.
//!
//! Promise: logs that are compared take short turns, warmed up; all threads of a turn start
//! together; everything acknowledged is read back and compared after the clock has stopped; a run
//! without enough flushes is refused.
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

/// Measures these logs under one load. They are open side by side and take turns of
/// [`Effort::turn`], each time begun by another, so that a slow second of the machine is shared by
/// all.
pub(crate) fn measure(
    kinds: &[&'static Kind],
    load: Load,
    effort: &Effort,
    whole: &Place,
    device: Option<&Device>,
) -> Result<Vec<(&'static Kind, Outcome)>, Failure> {
    let enter = |(at, kind): (usize, &&'static Kind)| {
        let place = whole.folder(&format!("synced-{at}"))?;
        kind.named("synced sets", Entrant::new(kind, load, effort, place))
    };
    let mut entrants = kinds.iter().enumerate().map(enter).collect::<Result<Vec<_>, Failure>>()?;
    for turn in 0..effort.turns * kinds.len() {
        let at = (turn + turn / kinds.len()) % kinds.len();
        let entrant = &mut entrants[at];
        entrant.kind.named("synced sets", entrant.turn(load, effort.turn, device))?;
    }
    let leave = |entrant: Entrant| {
        let kind = entrant.kind;
        Ok((kind, kind.named("synced sets", entrant.leave(load))?))
    };
    entrants.into_iter().map(leave).collect()
}

/// A log that is measured.
struct Entrant {
    kind: &'static Kind,
    place: Place,
    peer: Box<dyn Peer>,
    hands: Vec<Hand>,
    spent: Spent,
}

/// What all turns of a log took together.
#[derive(Default)]
struct Spent {
    wall_s: f64,
    cpu_us: f64,
    machine_us: f64,
    flushes: Option<Flushes>,
}

impl Entrant {
    /// Opens and warms up.
    fn new(
        kind: &'static Kind,
        load: Load,
        effort: &Effort,
        place: Place,
    ) -> Result<Entrant, Failure> {
        let bytes = effort.synced_bytes();
        let terms = Terms { durability: Durability::Synced, format: load.format, bytes };
        let peer = (kind.open)(place.path(), &terms)?;
        let mut hands: Vec<Hand> =
            (0..load.threads).map(|writer| Hand::new(writer, load.format)).collect();
        append_all(&*peer, &mut hands, load.set, effort.warm_up)?;
        hands.iter_mut().for_each(|hand| hand.times_ns.clear());
        Ok(Entrant { kind, place, peer, hands, spent: Spent::default() })
    }

    /// Appends for so long.
    fn turn(&mut self, load: Load, time: Duration, device: Option<&Device>) -> Result<(), Failure> {
        self.place.settle()?;
        let before = device.map(Device::look).transpose()?;
        let clock = Clock::start();
        append_all(&*self.peer, &mut self.hands, load.set, time)?;
        self.spent.wall_s += clock.wall_s();
        self.spent.cpu_us += clock.process_us();
        self.spent.machine_us += clock.machine_us();
        let after = device.map(Device::look).transpose()?;
        if let Some((before, after)) = before.zip(after) {
            let so_far = self.spent.flushes.unwrap_or_default();
            self.spent.flushes = Some(so_far.and(after.since(before)));
        }
        Ok(())
    }

    /// Closes, compares what is in the log with what was acknowledged, and sums up.
    fn leave(self, load: Load) -> Result<Outcome, Failure> {
        let Entrant { kind, place, peer, hands, spent } = self;
        peer.close()?;
        check(kind, load.format, &place, &hands)?;
        let mut times: Vec<u64> = hands.into_iter().flat_map(|hand| hand.times_ns).collect();
        times.sort_unstable();
        let sets = times.len() as u64;
        let checked = |it: Flushes| flushes::check(it.count, (sets, "sets"), load.threads);
        spent.flushes.map_or(Ok(()), checked)?;
        let shares =
            |it: Flushes| (it.count as f64 / sets as f64, it.took_ms as f64 / 1e3 / spent.wall_s);
        let records = sets as f64 * load.set as f64;
        Ok(Outcome {
            records_per_s: records / spent.wall_s,
            p50_us: percentile(&times, 50) as f64 / 1000.0,
            p99_us: percentile(&times, 99) as f64 / 1000.0,
            cpu_us_per_record: spent.cpu_us / records,
            machine_us_per_record: spent.machine_us / records,
            flushes: spent.flushes.map(shares),
        })
    }
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

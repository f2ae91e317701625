//! How much checkpoints cost, however often they are taken: ours in both of their forms, and those
//! of the classical kind.
//!
//! Promise: all kinds, and all intervals of each, take short turns within one process, in stores
//! that stay open, so that a slow second of the machine is shared by all; an interval that is
//! longer than a turn counts on in its next ones. The pool holds more than the database.
//! Never: takes a checkpoint but in a turn of its interval.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdfast_bench_common::place::Place;
use holdfast_store::Checkpoints;

use crate::Failure;
use crate::effort::Effort;
use crate::peers::Durability;
use crate::peers::holdfast::Bank;
use crate::rates::Loaded;
use crate::subject::{Rate, Subject};

/// Milliseconds between checkpoints; the last takes none.
pub(crate) const INTERVALS_MS: [Option<u64>; 6] =
    [Some(1), Some(10), Some(100), Some(1000), Some(10_000), None];

/// Kinds of checkpoints, with their names.
pub(crate) const KINDS: [(&str, Checkpoints); 3] = [
    ("decoupled", Checkpoints::Decoupled),
    ("reread", Checkpoints::Reread),
    ("classical", Checkpoints::Classical),
];

/// What some turns of a kind and an interval came to, together.
pub(crate) struct Slice {
    /// A place in [`KINDS`],
    pub(crate) kind: usize,
    /// and one in [`INTERVALS_MS`].
    pub(crate) interval: usize,
    pub(crate) per_s: f64,
    pub(crate) cpu_us: f64,
}

/// What all slices came to.
pub(crate) struct Outcome {
    pub(crate) slices: Vec<Slice>,
    /// Latches that checkpoints took, a number a kind.
    pub(crate) latches: [u64; KINDS.len()],
}

/// A store of one kind of checkpoints.
struct Kind {
    subject: Subject,
    /// How long each interval has run since its last checkpoint.
    since: [Duration; INTERVALS_MS.len()],
}

/// Measures all kinds, with the log on this disk or in this memory.
pub(crate) fn measure(
    loaded: &Loaded,
    effort: &Effort,
    whole: &Place,
    durability: Durability,
) -> Result<Outcome, Failure> {
    let mut kinds = Vec::new();
    for (name, checkpoints) in KINDS {
        let name = format!("flat-{name}");
        let mut subject = Subject::open(loaded, &name, whole, durability, |config| {
            (config.checkpoints, config.checkpoint_ms) = (checkpoints, None);
        })?;
        subject.warm_up(effort.warm_up)?;
        kinds.push(Kind { subject, since: Default::default() });
    }
    let mut slices = Vec::new();
    for _ in 0..effort.flat_rounds {
        slices.extend(round(&mut kinds, effort)?);
    }
    let mut latches = [0; KINDS.len()];
    for (kind, latches) in kinds.into_iter().zip(&mut latches) {
        *latches = kind.subject.bank.store.checkpoint_latches();
        kind.subject.end(loaded)?;
    }
    Ok(Outcome { slices, latches })
}

/// A slice of each kind and interval, in turns of which each is begun by another interval.
fn round(kinds: &mut [Kind], effort: &Effort) -> Result<Vec<Slice>, Failure> {
    let mut rates: [[Vec<Rate>; INTERVALS_MS.len()]; KINDS.len()] = Default::default();
    for turn in 0..effort.flat_turns {
        for step in 0..INTERVALS_MS.len() {
            let interval = (turn + step) % INTERVALS_MS.len();
            for (kind, rates) in kinds.iter_mut().zip(&mut rates) {
                rates[interval].push(kind.turn(interval, effort.flat_turn)?);
            }
        }
    }
    let slice = |(kind, interval): (usize, usize)| {
        let rates = &rates[kind][interval];
        let per_s: f64 = rates.iter().map(|rate| rate.per_s).sum();
        let cpu_us: f64 = rates.iter().map(|rate| rate.cpu_us * rate.per_s).sum();
        Slice { kind, interval, per_s: per_s / rates.len() as f64, cpu_us: cpu_us / per_s }
    };
    let all = (0..KINDS.len()).flat_map(|kind| (0..INTERVALS_MS.len()).map(move |at| (kind, at)));
    Ok(all.map(slice).collect())
}

impl Kind {
    fn turn(&mut self, interval: usize, time: Duration) -> Result<Rate, Failure> {
        let since = &mut self.since[interval];
        let every = INTERVALS_MS[interval].map(Duration::from_millis);
        let beside = |bank: &Bank, run: &mut dyn FnMut() -> Result<(), Failure>| {
            let stop = &AtomicBool::new(false);
            std::thread::scope(|scope| {
                let checkpoints = scope.spawn(move || checkpoints(bank, every, since, stop));
                let done = run();
                stop.store(true, Ordering::Relaxed);
                checkpoints.thread().unpark();
                checkpoints.join().map_err(|_| "a thread died")??;
                done
            })
        };
        self.subject.slice(beside, time)
    }
}

/// Takes checkpoints until it is told to stop.
fn checkpoints(
    bank: &Bank,
    every: Option<Duration>,
    since: &mut Duration,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    // Without checkpoints a thread waits all the same: that there is one more makes a difference to
    // how the others are spread over the processors.
    let every = every.unwrap_or(Duration::MAX);
    let (mut seen, mut passed) = (Instant::now(), *since);
    while !stop.load(Ordering::Relaxed) {
        std::thread::park_timeout(every.saturating_sub(passed));
        passed += seen.elapsed();
        seen = Instant::now();
        if passed >= every {
            bank.store.checkpoint()?;
            passed = Duration::ZERO;
        }
    }
    *since = passed;
    Ok(())
}

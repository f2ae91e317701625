//! How much checkpoints cost, however often they are taken: ours in both of their forms, and those
//! of the classical kind.
//!
//! Promise: all kinds, and all intervals of each, take turns in short slices within one process,
//! in stores that stay open; an interval that is longer than a slice counts on in its next slices.
//! The pool holds more than the database.
//! Never: takes a checkpoint but in the slice of its interval.

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

/// What a slice came to.
pub(crate) struct Slice {
    /// A place in [`KINDS`],
    pub(crate) kind: usize,
    /// and one in [`INTERVALS_MS`].
    pub(crate) interval: usize,
    pub(crate) rate: Rate,
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
    for round in 0..effort.flat_rounds {
        for step in 0..INTERVALS_MS.len() {
            let interval = (round + step) % INTERVALS_MS.len();
            for (kind, it) in kinds.iter_mut().enumerate() {
                slices.push(Slice { kind, interval, rate: it.slice(interval, effort.slice)? });
            }
        }
    }
    let mut latches = [0; KINDS.len()];
    for (kind, latches) in kinds.into_iter().zip(&mut latches) {
        *latches = kind.subject.bank.store.checkpoint_latches();
        kind.subject.end(loaded)?;
    }
    Ok(Outcome { slices, latches })
}

impl Kind {
    fn slice(&mut self, interval: usize, time: Duration) -> Result<Rate, Failure> {
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
    let Some(every) = every else { return Ok(()) };
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

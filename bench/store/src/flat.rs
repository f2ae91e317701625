//! How much checkpoints cost, however often they are taken: ours in both of their forms, and those
//! of the classical kind.
//!
//! Promise: all kinds, and all intervals of each, take turns in short slices within one process,
//! in stores that stay open; an interval that is longer than a slice counts on in its next slices.
//! The pool holds more than the database.
//! Never: takes a checkpoint but in the slice of its interval.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdfast_bench_common::clock::Clock;
use holdfast_bench_common::place::Place;
use holdfast_store::{Checkpoints, Config};

use crate::Failure;
use crate::drive::{self, Hand};
use crate::effort::Effort;
use crate::peers::Durability;
use crate::peers::holdfast::{self, Bank};
use crate::rates::{Loaded, terms};
use crate::tpcb;

/// Milliseconds between checkpoints; the last takes none.
pub(crate) const INTERVALS_MS: [Option<u64>; 6] =
    [Some(1), Some(10), Some(100), Some(1000), Some(10_000), None];

/// Kinds of checkpoints, with their names.
pub(crate) const KINDS: [(&str, Checkpoints); 3] = [
    ("decoupled", Checkpoints::Decoupled),
    ("reread", Checkpoints::Reread),
    ("classical", Checkpoints::Classical),
];

/// Clients: each has a branch, and other branches have none.
const CLIENTS: u32 = 2;

/// What a slice came to.
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

/// A store of one kind of checkpoints, under load.
struct Subject {
    bank: Bank,
    hands: Vec<Hand>,
    /// How long each interval has run since its last checkpoint.
    since: [Duration; INTERVALS_MS.len()],
    place: Place,
}

/// Measures all kinds, with the log on this disk or in this memory.
pub(crate) fn measure(
    loaded: &Loaded,
    effort: &Effort,
    whole: &Place,
    durability: Durability,
) -> Result<Outcome, Failure> {
    let mut subjects: Vec<Subject> = Vec::new();
    for (name, kind) in KINDS {
        subjects.push(Subject::open(loaded, (name, kind), whole, durability)?);
    }
    for subject in &mut subjects {
        drive::all(&subject.bank, &mut subject.hands, effort.warm_up)?;
    }
    let mut slices = Vec::new();
    for round in 0..effort.flat_rounds {
        for step in 0..INTERVALS_MS.len() {
            let interval = (round + step) % INTERVALS_MS.len();
            for (kind, subject) in subjects.iter_mut().enumerate() {
                let (per_s, cpu_us) = subject.slice(interval, effort.slice)?;
                slices.push(Slice { kind, interval, per_s, cpu_us });
            }
        }
    }
    let mut latches = [0; KINDS.len()];
    for (subject, latches) in subjects.into_iter().zip(&mut latches) {
        *latches = subject.bank.store.checkpoint_latches();
        subject.end(loaded)?;
    }
    Ok(Outcome { slices, latches })
}

impl Subject {
    fn open(
        loaded: &Loaded,
        (name, checkpoints): (&str, Checkpoints),
        whole: &Place,
        durability: Durability,
    ) -> Result<Subject, Failure> {
        let place = whole.copy(&format!("flat-{name}"), loaded.place.path())?;
        let told = holdfast::config(place.path(), &terms(durability));
        let config = Config { checkpoints, checkpoint_ms: None, ..told };
        let bank = Bank::open(place.path(), &config, durability)?;
        // Brings every page into the pool.
        tpcb::check(&bank, loaded.bank, 0..=0)?;
        let hands = Hand::all(loaded.bank, CLIENTS);
        Ok(Subject { bank, hands, since: Default::default(), place })
    }

    /// One slice: transactions in a second, and what each took of a processor.
    fn slice(&mut self, interval: usize, time: Duration) -> Result<(f64, f64), Failure> {
        drive::take_times_ns(&mut self.hands);
        let stop = &AtomicBool::new(false);
        let (bank, hands, since) = (&self.bank, &mut self.hands, &mut self.since[interval]);
        let clock = Clock::start();
        std::thread::scope(|scope| {
            let every = INTERVALS_MS[interval].map(Duration::from_millis);
            let checkpoints = scope.spawn(move || checkpoints(bank, every, since, stop));
            let done = drive::all(bank, hands, time);
            stop.store(true, Ordering::Relaxed);
            checkpoints.thread().unpark();
            checkpoints.join().map_err(|_| "a thread died")??;
            done
        })?;
        let (wall_s, cpu_us) = (clock.wall_s(), clock.process_us());
        let count = drive::take_times_ns(&mut self.hands).len() as f64;
        Ok((count / wall_s, cpu_us / count))
    }

    fn end(self, loaded: &Loaded) -> Result<(), Failure> {
        let done = self.hands.iter().map(Hand::done).sum();
        tpcb::check(&self.bank, loaded.bank, done..=done)?;
        self.bank.store.close()?;
        drop(self.place);
        Ok(())
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

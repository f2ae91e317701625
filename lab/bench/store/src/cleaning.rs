//! How much it costs transactions that pages are written: from the archive, and from their frames.
//!
//! Promise: both cleaners, each with little and with much that may wait for it, take turns in short
//! slices within one process, in stores that stay open and do nothing else in between but clean.
//! The pool holds more than the database.
//! Never: compares anything but cleaners.

use holdfast_bench_common::place::Place;
use holdfast_store::Cleaner;

use crate::Failure;
use crate::effort::Effort;
use crate::peers::Durability;
use crate::rates::Loaded;
use crate::subject::{Rate, Subject};

/// Ways to clean: a name, who cleans, and how many MiB of records wait until he does.
pub(crate) const WAYS: [(&str, Cleaner, u64); 4] = [
    ("decoupled.4mib", Cleaner::Decoupled, 4),
    ("classical.4mib", Cleaner::Classical, 4),
    ("decoupled.32mib", Cleaner::Decoupled, 32),
    ("classical.32mib", Cleaner::Classical, 32),
];

/// What all slices came to.
pub(crate) struct Outcome {
    /// Places in [`WAYS`], and what their slices came to.
    pub(crate) slices: Vec<(usize, Rate)>,
    /// Latches that cleaners took, a number a way.
    pub(crate) latches: [u64; WAYS.len()],
}

/// Measures all ways, with the log on this disk or in this memory.
pub(crate) fn measure(
    loaded: &Loaded,
    effort: &Effort,
    whole: &Place,
    durability: Durability,
) -> Result<Outcome, Failure> {
    let mut subjects = Vec::new();
    for (name, cleaner, mib) in WAYS {
        let name = format!("clean-{name}");
        let mut subject = Subject::open(loaded, &name, whole, durability, |config| {
            (config.cleaner, config.clean_every_bytes) = (cleaner, mib << 20);
        })?;
        subject.warm_up(effort.warm_up)?;
        subjects.push(subject);
    }
    let mut slices = Vec::new();
    for round in 0..effort.flat_rounds {
        for step in 0..WAYS.len() {
            let way = (round + step) % WAYS.len();
            slices.push((way, subjects[way].slice(|_, run| run(), effort.cleaning_slice)?));
        }
    }
    let mut latches = [0; WAYS.len()];
    for (subject, latches) in subjects.into_iter().zip(&mut latches) {
        *latches = subject.bank.store.cleaner_latches();
        subject.end(loaded)?;
    }
    Ok(Outcome { slices, latches })
}

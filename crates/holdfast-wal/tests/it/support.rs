//! The record of the paper, and places for logs of it.

use std::sync::Arc;

use holdfast_io::fake::{FakeClock, FakeEntropy, FakeFiles};
use holdfast_wal::format::{Format, MessagePack};
use holdfast_wal::{Log, OpenError, Options, Place, Record, Recovery, ReplayError};
use serde::{Deserialize, Serialize};

/// Smallest segments, so that little data crosses many borders.
pub(crate) const SMALL: Options =
    Options::new().with_segment_bytes(64 << 10).with_segments(2).with_ring_bytes(128 << 10);

/// The inner struct of the paper's record (section V).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Data {
    pub(crate) a: u32,
    pub(crate) b: u32,
}

/// The paper's record (section V).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) id: u32,
    pub(crate) comment: String,
    pub(crate) objects: Vec<Data>,
}

impl Record for Work {
    const NAME: &'static str = "paper.record";
}

/// Record number `id`; each differs from every other.
pub(crate) fn work(id: u32) -> Work {
    let objects = (0..id % 9).map(|a| Data { a, b: id.wrapping_mul(0x9e37_79b9) }).collect();
    Work { id, comment: format!("the work item {id}"), objects }
}

/// A modelled disk as the place of a log.
pub(crate) fn place(files: &FakeFiles) -> Place {
    let (clock, entropy) = (FakeClock::default(), FakeEntropy::new(1));
    Place::modelled(Arc::new(files.clone()), Arc::new(clock), Arc::new(entropy))
}

/// Opens the log of work items on a modelled disk.
pub(crate) fn open(files: &FakeFiles) -> Result<(Log<Work, MessagePack>, Recovery), OpenError> {
    Log::open_at(place(files), &SMALL)
}

/// A new log of work items on a new disk.
pub(crate) fn new_log(seed: u64) -> (FakeFiles, Log<Work, MessagePack>) {
    let files = FakeFiles::new(seed);
    Log::<Work, MessagePack>::create_at(&place(&files), &SMALL).expect("the disk is empty");
    let (log, _) = open(&files).expect("a new log opens");
    (files, log)
}

/// All records, or the first error.
pub(crate) fn records<R: Record, F: Format<R>>(log: &Log<R, F>) -> Result<Vec<R>, ReplayError> {
    log.iter().map(|entry| entry.map(|entry| entry.record)).collect()
}

/// The work items with these numbers.
pub(crate) fn works(ids: std::ops::Range<u32>) -> Vec<Work> {
    ids.map(work).collect()
}

/// How many times more is to be tried than in every run of the tests.
pub(crate) fn factor() -> u64 {
    let factor = std::env::var("HOLDFAST_SEEDS_FACTOR").ok();
    factor.and_then(|factor| factor.parse().ok()).unwrap_or(1)
}

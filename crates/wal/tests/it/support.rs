//! The record of the paper, and places for logs of it.

use std::sync::Arc;

use holdfast_io::checksum::crc32c;
use holdfast_io::fake::{FakeClock, FakeEntropy, FakeFiles};
use holdfast_io::{Files, OpenHow};
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
    place_with(files, 1)
}

/// [`place`], with this chance: it gives logs that are made there their identity.
fn place_with(files: &FakeFiles, chance: u64) -> Place {
    let (clock, entropy) = (FakeClock::default(), FakeEntropy::new(chance));
    Place::modelled(Arc::new(files.clone()), Arc::new(clock), Arc::new(entropy))
}

/// A log of work items.
pub(crate) type WorkLog = Log<Work, MessagePack>;

/// Opens the log of work items on a modelled disk.
pub(crate) fn open(files: &FakeFiles) -> Result<(WorkLog, Recovery), OpenError> {
    Log::open_at(place(files), &SMALL)
}

/// A new log of work items on a new disk.
pub(crate) fn new_log(seed: u64) -> (FakeFiles, Log<Work, MessagePack>) {
    new_log_with(seed, 1)
}

/// [`new_log`], with the identity that this chance gives.
pub(crate) fn new_log_with(seed: u64, chance: u64) -> (FakeFiles, Log<Work, MessagePack>) {
    let (files, place) = (FakeFiles::new(seed), |files| place_with(files, chance));
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

/// The bytes of a file.
pub(crate) fn bytes_of(files: &FakeFiles, name: &str) -> Vec<u8> {
    let file = files.open(name.as_ref(), OpenHow::default()).unwrap();
    let mut bytes = vec![0; file.metadata().unwrap().size_bytes as usize];
    file.read_full_at(&mut bytes, 0).unwrap();
    bytes
}

/// Makes a file hold these bytes, durably.
pub(crate) fn put_bytes(files: &FakeFiles, name: &str, bytes: &[u8]) {
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = files.open(name.as_ref(), how).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
    files.sync_dir("".as_ref()).unwrap();
}

/// Names of the segment files, in order.
pub(crate) fn segments(files: &FakeFiles) -> Vec<String> {
    let entries = files.read_dir("".as_ref()).unwrap().into_iter();
    let names = entries.map(|entry| String::from_utf8(entry.name).unwrap());
    let mut names: Vec<_> = names.filter(|name| name.starts_with("segment-")).collect();
    names.sort();
    names
}

/// The label, as every segment has it.
pub(crate) fn label(files: &FakeFiles) -> Vec<u8> {
    let head = bytes_of(files, "segment-00000000");
    let length = u32::from_le_bytes(head[48..52].try_into().unwrap()) as usize;
    head[56..56 + length].to_vec()
}

/// Makes the directory what the first version of the format made of it: one catalogue, and a file
/// for the label.
pub(crate) fn make_old(files: &FakeFiles) {
    put_bytes(files, "label", &label(files));
    let new = bytes_of(files, "catalogue");
    let count = |at: usize| u16::from_le_bytes(new[at..at + 2].try_into().unwrap()) as usize;
    let mut old = [&new[..64], &new[72..72 + 16 * (count(12) + count(62))]].concat();
    seal(&mut old);
    put_bytes(files, "catalogue", &old);
    files.remove_file("catalogue.copy".as_ref()).unwrap();
    for name in segments(files) {
        let mut bytes = bytes_of(files, &name);
        seal(&mut bytes[..48]);
        bytes[48..4096].fill(0);
        put_bytes(files, &name, &bytes);
    }
}

/// Puts version 1 and the check where each of these files has them.
fn seal(bytes: &mut [u8]) {
    bytes[4..8].copy_from_slice(&1u32.to_le_bytes());
    let check = crc32c(0, &bytes[12..]);
    bytes[8..12].copy_from_slice(&check.to_le_bytes());
}

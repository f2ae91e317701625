//! What this log alone is asked: the paper's experiment, and records that are durable and read back
//! while more are appended.
//!
//! Promise: what is counted came back, in order, from the log itself.
//! Never: waits for a set before the last one is appended.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use holdfast_bench_common::clock::Clock;
use holdfast_bench_common::place::Place;
use holdfast_wal::format::{Archive, Format as Written, Json, MessagePack};
use holdfast_wal::{Log, Ticket};

use crate::Failure;
use crate::effort::{Effort, bytes};
use crate::peers::{self, Durability, Terms};
use crate::reading::InMemory;
use crate::record::{Format, Record};
use crate::set::Source;
use crate::tally::Tally;

/// Times that a log is read.
const PASSES: u32 = 2;

/// How long a record may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The paper's experiment: records a second.
pub(crate) struct Paper {
    /// Appended: in memory.
    pub(crate) taken_per_s: f64,
    /// Appended, and on the disk.
    pub(crate) durable_per_s: f64,
    /// Read back, as the reader of the format does it, from the log that is still open.
    pub(crate) read_per_s: f64,
    /// Decoded from memory in between, if that was asked for.
    pub(crate) memory_per_s: Option<f64>,
}

/// Records that are durable and read back: records a second.
pub(crate) struct Pipelined {
    pub(crate) durable_per_s: f64,
    pub(crate) read_back_per_s: f64,
}

/// A format, and how its records are read without more work than it asks for.
pub(crate) trait Readable: Written<Record> + Sized {
    /// How big records are in it, nearly.
    const LIKE: Format;

    /// Reads all.
    fn read(log: &Log<Record, Self>, tally: &mut Tally) -> Result<(), Failure> {
        log.iter().try_for_each(|entry| tally.record(black_box(&entry?.record)))
    }
}

impl Readable for MessagePack {
    const LIKE: Format = Format::MessagePack;
}

impl Readable for Json {
    const LIKE: Format = Format::Json;
}

impl Readable for Archive {
    const LIKE: Format = Format::MessagePack;

    fn read(log: &Log<Record, Self>, tally: &mut Tally) -> Result<(), Failure> {
        let mut records = log.iter();
        while let Some(entry) = records.next_view()? {
            tally.id(black_box(entry.record).id.to_native())?;
        }
        Ok(())
    }
}

/// Appends all records in sets of so many, waits, and reads them back.
pub(crate) fn paper<F: Readable>(
    set: usize,
    memory: Option<&InMemory>,
    effort: &Effort,
    whole: &Place,
) -> Result<Paper, Failure> {
    let place = whole.folder("paper")?;
    let log = open::<F>(place.path(), effort)?;
    place.settle()?;
    let clock = Clock::start();
    let last = append_all(&log, set, effort.records)?;
    let taken_s = clock.wall_s();
    last.wait()?;
    let durable_s = clock.wall_s();
    let (read_s, memory_s) = read_beside(&log, memory, effort.records)?;
    let per_s = |seconds| f64::from(effort.records) / seconds;
    Ok(Paper {
        taken_per_s: per_s(taken_s),
        durable_per_s: per_s(durable_s),
        read_per_s: per_s(read_s),
        memory_per_s: memory_s.map(per_s),
    })
}

/// Reads all [`PASSES`] times, and the same records in memory before or after, in turn, so that a
/// slow second of the machine is shared by both: seconds of each.
fn read_beside<F: Readable>(
    log: &Log<Record, F>,
    memory: Option<&InMemory>,
    records: u32,
) -> Result<(f64, Option<f64>), Failure> {
    let read = || timed::<F>(records, |tally| F::read(log, tally));
    let decode =
        || memory.map_or(Ok(0.0), |memory| timed::<F>(records, |tally| memory.read(tally)));
    let (mut read_s, mut memory_s) = (0.0, 0.0);
    for pass in 0..PASSES {
        let memory_first = pass % 2 == 1;
        memory_s += if memory_first { decode()? } else { 0.0 };
        read_s += read()?;
        memory_s += if memory_first { 0.0 } else { decode()? };
    }
    let each = |seconds| seconds / f64::from(PASSES);
    Ok((each(read_s), memory.map(|_| each(memory_s))))
}

/// Seconds until all records have come to the tally.
fn timed<F: Readable>(
    records: u32,
    read: impl FnOnce(&mut Tally) -> Result<(), Failure>,
) -> Result<f64, Failure> {
    let mut tally = Tally::of_order(F::LIKE);
    let clock = Clock::start();
    read(&mut tally)?;
    let seconds = clock.wall_s();
    tally.expect(&[records])?;
    Ok(seconds)
}

/// Appends all records one by one, while another thread follows the log and decodes each as soon as
/// it is durable. The clock is read when the last is durable, and when the last was read.
pub(crate) fn pipelined(effort: &Effort, whole: &Place) -> Result<Pipelined, Failure> {
    let place = whole.folder("pipelined")?;
    let log = &open::<MessagePack>(place.path(), effort)?;
    place.settle()?;
    let clock = Clock::start();
    let durable_s = std::thread::scope(|scope| {
        let reader = scope.spawn(|| follow(log, effort.records));
        append_all(log, 1, effort.records)?.wait()?;
        let durable_s = clock.wall_s();
        reader.join().map_err(|_| "the reader died")??;
        Ok::<_, Failure>(durable_s)
    })?;
    let per_s = |seconds| f64::from(effort.records) / seconds;
    Ok(Pipelined { durable_per_s: per_s(durable_s), read_back_per_s: per_s(clock.wall_s()) })
}

fn open<F: Readable>(folder: &Path, effort: &Effort) -> Result<Log<Record, F>, Failure> {
    let room = bytes(effort.records, F::LIKE);
    let terms = Terms { durability: Durability::Deferred, format: F::LIKE, bytes: room };
    Ok(Log::open_or_create(folder, &peers::options(&terms))?.0)
}

/// The ticket of the last set.
fn append_all<F: Readable>(
    log: &Log<Record, F>,
    set: usize,
    records: u32,
) -> Result<Ticket<'_>, Failure> {
    let mut source = Source::new(0, F::LIKE);
    loop {
        let ticket = log.append_all(source.next_set(set).records())?;
        if source.given() >= records {
            return Ok(ticket);
        }
    }
}

fn follow(log: &Log<Record, MessagePack>, records: u32) -> Result<(), Failure> {
    let (mut tail, mut tally) =
        (log.tail(log.stat().checkpoint), Tally::of_content(Format::MessagePack));
    for _ in 0..records {
        let entry = tail.next(PATIENCE)?.ok_or("the log stands still")?;
        tally.record(&entry.record)?;
    }
    tally.expect(&[records])
}

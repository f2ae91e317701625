//! What this log alone is asked: the paper's experiment, and records that are durable and read back
//! while more are appended.
//!
//! Promise: what is counted came back, in order, from the log itself.
//! Never: waits for a set before the last one is appended.

use std::hint::black_box;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use holdfast_bench_common::clock::Clock;
use holdfast_bench_common::place::Place;
use holdfast_wal::format::{Archive, Format as Written, Json, MessagePack};
use holdfast_wal::{Log, Lsn, Ticket};

use crate::Failure;
use crate::effort::{Effort, bytes};
use crate::peers::{self, Durability, Terms};
use crate::reading::InMemory;
use crate::record::{Format, Record, SAMPLES};
use crate::set::Source;
use crate::tally::Tally;

/// Turns in which a log is read.
const READING_TURNS: usize = 10;

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

    /// Reads so many from a place on; where it has come to.
    fn read(
        log: &Log<Record, Self>,
        from: Lsn,
        records: usize,
        tally: &mut Tally,
    ) -> Result<Lsn, Failure> {
        log.iter_from(from).take(records).try_fold(from, |_, entry| {
            let entry = entry?;
            tally.record(black_box(&entry.record))?;
            Ok(entry.end)
        })
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

    fn read(
        log: &Log<Record, Self>,
        from: Lsn,
        records: usize,
        tally: &mut Tally,
    ) -> Result<Lsn, Failure> {
        let (mut entries, mut end) = (log.iter_from(from), from);
        for _ in 0..records {
            let Some(entry) = entries.next_view()? else { break };
            tally.id(black_box(entry.record).id.to_native())?;
            end = entry.end;
        }
        Ok(end)
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

/// Reads all, in turns with the same records in memory, so that a slow second of the machine is
/// shared by both: seconds of each. Each turn opens its own reader, which has nothing ready.
fn read_beside<F: Readable>(
    log: &Log<Record, F>,
    memory: Option<&InMemory>,
    records: u32,
) -> Result<(f64, Option<f64>), Failure> {
    let (mut tally, mut tally_of_memory) = (Tally::of_order(F::LIKE), Tally::of_order(F::LIKE));
    let (mut from, mut read_s, mut memory_s) = (log.stat().checkpoint, 0.0, 0.0);
    for turn in in_turns(records as usize) {
        let clock = Clock::start();
        from = F::read(log, from, turn.len(), &mut tally)?;
        read_s += clock.wall_s();
        if let Some(memory) = memory {
            let clock = Clock::start();
            memory.read(turn, &mut tally_of_memory)?;
            memory_s += clock.wall_s();
        }
    }
    tally.expect(&[records])?;
    Ok((read_s, memory.map(|_| memory_s)))
}

/// Parts of so many records that no set lies across.
fn in_turns(records: usize) -> impl Iterator<Item = Range<usize>> {
    let step = (records / READING_TURNS).next_multiple_of(SAMPLES);
    (0..records).step_by(step).map(move |begin| begin..records.min(begin + step))
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

//! Logs that a killed process left behind: how long until they can be appended to, and how fast
//! they are read.
//!
//! Promise: every log is filled by a process of its own, with sets of one record, made durable, and
//! killed; each measurement has a copy of what that left; every record is read.
//! Never: opens the original.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

use holdfast_bench_common::child::Child;
use holdfast_bench_common::clock::Clock;
use holdfast_bench_common::output;
use holdfast_bench_common::place::Place;

use crate::Failure;
use crate::effort::bytes;
use crate::peers::{Durability, Kind, Terms, Unsynced};
use crate::record::Format;
use crate::set::Source;
use crate::tally::Tally;
use crate::unsynced;

/// Threads that fill a log which syncs always: alone, one would take minutes.
const SYNCING_THREADS: u32 = 64;

/// What a killed process left.
pub(crate) struct Left {
    place: Place,
    format: Format,
    /// Records of each writer.
    counts: Vec<u32>,
}

impl Left {
    /// Has a log filled, and the process that did it killed.
    pub(crate) fn by(
        kind: &Kind,
        format: Format,
        records: u32,
        whole: &Place,
    ) -> Result<Left, Failure> {
        let place = whole.folder(&format!("left-{}-{records}", kind.name))?;
        let mut filler = filler(kind, format, records, place.path())?;
        if filler.line()? != output::FILLED {
            return Err("the process that fills a log failed".into());
        }
        drop(filler);
        Ok(Left { place, format, counts: counts(kind, records) })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }

    /// Records it has.
    fn records(&self) -> f64 {
        self.counts.iter().map(|count| f64::from(*count)).sum()
    }

    /// Seconds until the log is open, whole, and can be appended to.
    pub(crate) fn recovery_s(&self, kind: &Kind, whole: &Place) -> Result<f64, Failure> {
        let place = whole.copy("recovery", self.place.path())?;
        let clock = Clock::start();
        let peer = (kind.open)(place.path(), &Terms::recovery(self.format))?;
        let seconds = clock.wall_s();
        peer.close()?;
        Ok(seconds)
    }

    /// Records read in a second, opening, checksums and decoding included. Nothing for a limit.
    pub(crate) fn read_per_s(&self, kind: &Kind, whole: &Place) -> Result<Option<f64>, Failure> {
        let Some(read) = kind.read else { return Ok(None) };
        let place = whole.copy("read", self.place.path())?;
        let mut tally = Tally::of_order(self.format);
        let clock = Clock::start();
        read(place.path(), &mut tally)?;
        let seconds = clock.wall_s();
        tally.expect(&self.counts)?;
        Ok(Some(self.records() / seconds))
    }
}

/// Records that lie in memory, one after the other: decoding them is the limit of reading.
pub(crate) struct InMemory {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl InMemory {
    /// So many.
    pub(crate) fn new(format: Format, records: u32) -> Result<InMemory, Failure> {
        let mut source = Source::new(0, format);
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        while source.given() < records {
            for (_, record) in source.next_set(1).encode()? {
                bytes.extend_from_slice(record);
                ends.push(bytes.len());
            }
        }
        Ok(InMemory { bytes, ends })
    }

    /// Decodes all.
    pub(crate) fn read(&self, tally: &mut Tally) -> Result<(), Failure> {
        let mut begin = 0;
        for end in &self.ends {
            tally.bytes(&self.bytes[begin..*end])?;
            begin = *end;
        }
        Ok(())
    }
}

/// A process that fills a log.
fn filler(kind: &Kind, format: Format, records: u32, folder: &Path) -> Result<Child, Failure> {
    let bytes = bytes(records, format).to_string();
    let words = ["--fill", kind.name, format.name(), &records.to_string(), &bytes];
    Child::start(words.map(OsStr::new).into_iter().chain([folder.as_os_str()]))
}

/// Fills a log, says so, and waits to be killed, or for the end of whoever would do that.
pub(crate) fn fill(
    kind: &Kind,
    format: Format,
    records: u32,
    bytes: u64,
    folder: &Path,
) -> Result<(), Failure> {
    let durability = match kind.unsynced {
        Unsynced::Never => Durability::Synced,
        Unsynced::Sets | Unsynced::Batches | Unsynced::Memory => Durability::Deferred,
    };
    let peer = (kind.open)(folder, &Terms { durability, format, bytes })?;
    let writers = counts(kind, records).into_iter().zip(0..);
    std::thread::scope(|scope| {
        let fill = |(count, writer)| {
            let peer = &*peer;
            let mut source = Source::new(writer, format);
            scope.spawn(move || unsynced::fill(peer, &mut source, 1, count))
        };
        let threads: Vec<_> = writers.map(fill).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread died")?)
    })?;
    peer.sync()?;
    output::filled()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// How many records each writer gives.
fn counts(kind: &Kind, records: u32) -> Vec<u32> {
    match kind.unsynced {
        Unsynced::Never => (0..SYNCING_THREADS).map(|_| records / SYNCING_THREADS).collect(),
        Unsynced::Sets | Unsynced::Batches | Unsynced::Memory => vec![records],
    }
}

//! Records that nobody waits for: how fast they are taken, and when all of them are durable.
//!
//! Promise: one clock for both: it is read when the last set was taken, and again when the sync
//! after it returned; then everything is read back.
//! Never: syncs before the last set, except where a log cannot do without.

use holdfast_bench_common::clock::Clock;
use holdfast_bench_common::flushes::{self, Device, Flushes};
use holdfast_bench_common::place::Place;

use crate::Failure;
use crate::effort::bytes;
use crate::peers::{Durability, Kind, Peer, Terms, Unsynced};
use crate::record::Format;
use crate::set::Source;
use crate::tally::Tally;

/// What a run came to.
pub(crate) struct Outcome {
    /// Taken.
    pub(crate) records_per_s: f64,
    pub(crate) cpu_us_per_record: f64,
    /// Taken and durable.
    pub(crate) durable_per_s: f64,
}

/// Measures one log.
pub(crate) fn measure(
    kind: &Kind,
    format: Format,
    (set, records): (usize, u32),
    whole: &Place,
    device: Option<&Device>,
) -> Result<Outcome, Failure> {
    let place = whole.folder("unsynced")?;
    let terms = Terms { durability: Durability::Deferred, format, bytes: bytes(records, format) };
    let peer = (kind.open)(place.path(), &terms)?;
    let mut source = Source::new(0, format);
    place.settle()?;
    let clock = Clock::start();
    fill(&*peer, &mut source, set, records)?;
    let (taken_s, cpu_us) = (clock.wall_s(), clock.process_us());
    let before = device.map(Device::look).transpose()?;
    peer.sync()?;
    let durable_s = clock.wall_s();
    let after = device.map(Device::look).transpose()?;
    if kind.unsynced == Unsynced::Sets {
        let check = |(before, after): (Flushes, Flushes)| {
            flushes::check(after.since(before).count, (1, "sets"), 1)
        };
        before.zip(after).map_or(Ok(()), check)?;
    }
    peer.close()?;

    if let Some(read) = kind.read {
        let mut tally = Tally::of_content(format);
        read(place.path(), &mut tally)?;
        tally.expect(&[source.given()])?;
    }
    let records = f64::from(source.given());
    Ok(Outcome {
        records_per_s: records / taken_s,
        cpu_us_per_record: cpu_us / records,
        durable_per_s: records / durable_s,
    })
}

/// Appends sets of one writer until it has given so many records.
pub(crate) fn fill(
    peer: &dyn Peer,
    source: &mut Source,
    set: usize,
    records: u32,
) -> Result<(), Failure> {
    let mut writer = peer.writer();
    while source.given() < records {
        writer.append(&mut source.next_set(set))?;
    }
    Ok(())
}

//! How long an append takes when nobody waits for the disk.
//!
//! Promise: the ring has been used before, and has room for all that is timed; what was appended is
//! made durable before more is, while no clock runs.
//! Never: times a write.

use std::sync::Arc;

use holdfast_bench_common::clock::Clock;
use holdfast_bench_common::place::Place;
use holdfast_io::real::{RealClock, RealFiles};
use holdfast_log::{LogConfig, Lsn, Parity, Policy, Retention, Scanned};
use holdfast_memory::{Medium, Region, RegionSpec};
use holdfast_wal::format::MessagePack;
use holdfast_wal::{Log, Options};

use crate::Failure;
use crate::effort::Effort;
use crate::record::{Format, Record};
use crate::set::Source;

/// Records that fit into a ring of the usual size several times.
const BATCH: u32 = 1 << 16;

/// Batches that only warm the ring.
const WARM_UP: u32 = 8;

/// Of a record, in a frame.
const RECORD_BYTES_MAX: u64 = 192;

const RING_BYTES: u64 = 32 << 20;

const _: () = assert!(BATCH as u64 * RECORD_BYTES_MAX <= RING_BYTES);

/// Nanoseconds of an append of a record that has been encoded before.
pub(crate) fn encoded_ns(effort: &Effort, whole: &Place) -> Result<f64, Failure> {
    let place = whole.folder("memory")?;
    let log = untyped(&place)?;
    let mut source = Source::new(0, Format::MessagePack);
    let mut set = source.next_set(1);
    let record = set.encode()?.next().map(|(_, bytes)| bytes.to_vec()).ok_or("no record")?;
    average_ns(effort, || {
        let clock = Clock::start();
        let mut end = Lsn(0);
        for _ in 0..BATCH {
            end = log.append(1, &[&record])?.end;
        }
        let seconds = clock.wall_s();
        log.commit(end)?;
        log.mark(end)?;
        Ok(seconds)
    })
}

/// Nanoseconds of an append of a typed record, encoding included.
pub(crate) fn typed_ns(effort: &Effort, whole: &Place) -> Result<f64, Failure> {
    let place = whole.folder("memory")?;
    let options = Options::new().with_ring_bytes(RING_BYTES);
    let (log, _) = Log::<Record, MessagePack>::open_or_create(place.path(), &options)?;
    let records = Record::samples();
    average_ns(effort, || {
        let clock = Clock::start();
        let mut last = None;
        for record in records.iter().cycle().take(BATCH as usize) {
            last = Some(log.append(record)?);
        }
        let seconds = clock.wall_s();
        if let Some(ticket) = last {
            ticket.wait()?;
            log.checkpoint(ticket.end())?;
        }
        Ok(seconds)
    })
}

fn average_ns(
    effort: &Effort,
    mut batch: impl FnMut() -> Result<f64, Failure>,
) -> Result<f64, Failure> {
    for _ in 0..WARM_UP {
        batch()?;
    }
    let batches = (effort.records / BATCH).max(1);
    let mut seconds = 0.0;
    for _ in 0..batches {
        seconds += batch()?;
    }
    Ok(seconds * 1e9 / f64::from(batches * BATCH))
}

/// A log without types, in the memory of this process.
fn untyped(place: &Place) -> Result<holdfast_log::Log, Failure> {
    let files = Arc::new(RealFiles::open(place.path())?);
    let config = LogConfig {
        segment_bytes: Options::default().segment_bytes,
        segments: Options::default().segments,
        dirty_bytes_max: u64::MAX,
        retention: Retention::OnDevice,
        scan: Scanned::Tail,
        parity: Parity::None,
        policy: Policy::Refuse,
    };
    let identity = [1; 16];
    holdfast_log::Log::create(&*files, identity, &config)?;
    let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 64, identity };
    let region = Arc::new(Region::create(&Medium::Private, &spec)?);
    Ok(holdfast_log::Log::open(files, region, Arc::new(RealClock), config)?.0)
}

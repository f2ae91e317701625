//! A stream on a log under test, and what must be found there.
//!
//! The checker is here, apart from the tests, so that `canary` can show that it notices losses.

use std::sync::Arc;

use holdfast_io::Files;
use holdfast_io::fake::{FakeClock, FakeFiles};
use holdfast_log::{CommitLog, Log, LogConfig, OpenError};
use holdfast_memory::{Medium, Region, RegionSpec};
use holdfast_pages::{FramePlace, Framed, Group, Records, Rsn, StageError, Stream, Tag, What};

/// Identity of the store under test, and of its log.
pub(crate) const IDENTITY: [u8; 16] = *b"a store in tests";
/// Smallest segments, so that little data crosses many borders. A payload has at most 32 KiB - 48.
const SEGMENT_BYTES: u64 = 64 << 10;
pub(crate) const RING_BYTES: u64 = 4 * SEGMENT_BYTES;
pub(crate) const CONFIG: LogConfig = LogConfig::in_ring(RING_BYTES, SEGMENT_BYTES, 2);

/// A stream, and what it stands on.
pub(crate) struct World {
    pub(crate) files: FakeFiles,
    pub(crate) log: Arc<Log>,
    pub(crate) stream: Arc<Stream>,
}

pub(crate) fn tag() -> Tag {
    Tag::of(&IDENTITY)
}

/// A store that has no records, on a new disk.
pub(crate) fn new_world(seed: u64) -> World {
    let files = FakeFiles::new(seed);
    Log::create(&files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
    open(&files).expect("a new log opens")
}

/// The stream of whatever the disk has, in a new region.
pub(crate) fn open(files: &FakeFiles) -> Result<World, OpenError> {
    let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 64, identity: IDENTITY };
    let region = Arc::new(Region::create(&Medium::Private, &spec).expect("memory for a region"));
    open_in(files, region)
}

/// The stream of whatever this region or the disk has.
pub(crate) fn open_in(files: &FakeFiles, region: Arc<Region>) -> Result<World, OpenError> {
    let shared: Arc<dyn Files> = Arc::new(files.clone());
    let clock = Arc::new(FakeClock::default());
    let (log, _) = Log::open(shared, region, Arc::<FakeClock>::clone(&clock), CONFIG)?;
    let log = Arc::new(log);
    let frames: Vec<FramePlace> = frames(&*log).iter().map(|frame| frame.place).collect();
    let next = frames.last().map_or(Rsn::FIRST, |frame| frame.end);
    let shared: Arc<dyn CommitLog> = Arc::<Log>::clone(&log);
    let stream = Arc::new(Stream::new(shared, clock, tag(), next, frames));
    Ok(World { files: files.clone(), log, stream })
}

/// A frame as it is found in the log.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) place: FramePlace,
    pub(crate) bytes: Vec<u8>,
}

/// Every frame in the log.
pub(crate) fn frames(log: &dyn CommitLog) -> Vec<Found> {
    let (marks, mut found) = (log.marks(), Vec::new());
    let read = log.read(marks.released, marks.tail, &mut |frame| {
        let records = Framed::parse(frame.payload, tag()).expect("the log is this store's");
        let place = FramePlace {
            first: records.first(),
            end: records.end(),
            lsn: frame.header.lsn,
            lsn_end: frame.end(),
            utc_ns: frame.header.utc_ns,
        };
        found.push(Found { place, bytes: records.bytes().to_vec() });
        true
    });
    read.expect("the marks bound what can be read");
    found
}

/// Puts a group of records that say which group they are, which of how many, and have that many
/// bytes more. Returns where the first of them stands and where the group ends.
pub(crate) fn put(
    stream: &Stream,
    number: u64,
    records: u8,
    bytes: usize,
) -> Result<(Rsn, Rsn), StageError> {
    let mut first = Rsn::NONE;
    let end = stream.append(&mut |group| {
        first = group.next();
        write(group, number, records, bytes);
    })?;
    Ok((first, end))
}

fn write(group: &mut Group<'_>, number: u64, records: u8, bytes: usize) {
    for at in 0..records {
        let mut said = vec![at; 10 + bytes];
        said[..8].copy_from_slice(&number.to_le_bytes());
        said[8..10].copy_from_slice(&[at, records]);
        let stands = group.next();
        assert_eq!(group.put(&What::Checkpoint(&said)), stands);
    }
}

/// A group that was found: its number, and where it begins.
pub(crate) type FoundGroup = (u64, Rsn);

/// The checker: frames follow one another without a gap, and each group is in one frame, whole.
pub(crate) fn groups(frames: &[Found]) -> Result<Vec<FoundGroup>, String> {
    let mut groups = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        let end = at.checked_sub(1).map_or(frame.place.first, |before| frames[before].place.end);
        if frame.place.first != end {
            return Err(format!("records from {end} to {} are missing", frame.place.first));
        }
        groups.extend(groups_of(frame)?);
    }
    Ok(groups)
}

fn groups_of(frame: &Found) -> Result<Vec<FoundGroup>, String> {
    let (mut groups, mut open) = (Vec::new(), None);
    for record in Records::new(frame.place.first, &frame.bytes) {
        let record = record.map_err(|fault| format!("frame at {}: {fault}", frame.place.first))?;
        let What::Checkpoint(said) = record.what else { return Err("a foreign record".into()) };
        let number = u64::from_le_bytes(said[..8].try_into().expect("eight bytes"));
        let (which, records) = (said[8], said[9]);
        if open.unwrap_or((number, 0)) != (number, which) {
            return Err(format!("group {number} is cut before its record {which}"));
        }
        if which == 0 {
            groups.push((number, record.rsn));
        }
        open = (which + 1 < records).then_some((number, which + 1));
    }
    open.map_or(Ok(groups), |(number, _)| Err(format!("group {number} is cut by a frame's end")))
}

/// Prints what is needed to see a failure again.
pub(crate) fn replay(test: &str, seed: u64) -> String {
    format!("replay: HOLDFAST_SEED={seed} cargo test -p holdfast-pages --test it {test}")
}

/// The seeds of a test: the one in `HOLDFAST_SEED`, or `count` from 1, or `HOLDFAST_SEEDS_FACTOR`
/// times as many.
pub(crate) fn seeds(count: u64) -> Vec<u64> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    match number("HOLDFAST_SEED") {
        Some(seed) => vec![seed],
        None => (1..=count * number("HOLDFAST_SEEDS_FACTOR").unwrap_or(1).max(1)).collect(),
    }
}

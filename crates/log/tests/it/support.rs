//! A log under test, next to a plain list of what was put into it.
//!
//! The checker is here, apart from the tests, so that `canary` can show that it notices losses.

use std::sync::Arc;

use holdfast_io::Files;
use holdfast_io::fake::{Effect, FakeClock, FakeFiles, Fault, Operation, Random, is_power_cut};
use holdfast_log::{
    AppendError, CommitError, CreateError, Frame, Kind, Log, LogConfig, Lsn, OpenError, Parity,
    Policy, Recovery, Retention, Scanned,
};
use holdfast_memory::{Medium, Region, RegionSpec};

/// Identity of the log under test.
pub(crate) const IDENTITY: [u8; 16] = *b"the log in tests";
/// Two segments to a ring would do; four let marks lag.
pub(crate) const RING_BYTES: u64 = 4 * CONFIG.segment_bytes;
/// Smallest segments, so that little data crosses many borders.
pub(crate) const CONFIG: LogConfig = LogConfig {
    segment_bytes: 64 << 10,
    segments: 2,
    dirty_bytes_max: 96 << 10,
    retention: Retention::InRing,
    parity: Parity::None,
    policy: Policy::Refuse,
    scan: Scanned::Tail,
};

/// One frame that was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Put {
    /// Where it went.
    pub(crate) lsn: Lsn,
    /// Where the next one starts.
    pub(crate) end: Lsn,
    /// What it holds.
    pub(crate) payload: Vec<u8>,
}

impl Put {
    /// What was read.
    pub(crate) fn of(frame: &Frame<'_>) -> Put {
        let (lsn, end) = (frame.header.lsn, frame.end());
        Put { lsn, end, payload: frame.payload.to_vec() }
    }
}

/// What the log must hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// Everything appended and not lost, in order.
    pub(crate) puts: Vec<Put>,
    /// The highest durable mark ever told.
    pub(crate) durable: u64,
    /// The highest position ever marked as applied.
    pub(crate) marked: u64,
    /// Number of the next payload; never reused.
    pub(crate) next: u64,
}

/// A region in the heap, empty.
pub(crate) fn region() -> Region {
    region_of(IDENTITY, RING_BYTES)
}

/// A region in the heap for another log, or of another size.
pub(crate) fn region_of(identity: [u8; 16], ring_bytes: u64) -> Region {
    let spec = RegionSpec { ring_bytes, roster_bytes: 4096, identity };
    Region::create(&Medium::Private, &spec).expect("a private region can be made")
}

/// Opens the log with a region.
pub(crate) fn open_with(files: &FakeFiles, region: Region) -> Result<(Log, Recovery), OpenError> {
    open_shared(files, &Arc::new(region))
}

/// Opens the log with a region that the caller keeps a hold of.
pub(crate) fn open_shared(
    files: &FakeFiles,
    region: &Arc<Region>,
) -> Result<(Log, Recovery), OpenError> {
    let files: Arc<dyn Files> = Arc::new(files.clone());
    Log::open(files, Arc::clone(region), Arc::new(FakeClock::default()), CONFIG)
}

/// Makes and opens a log on a new disk.
pub(crate) fn new_log(seed: u64) -> (FakeFiles, Arc<Region>, Log) {
    let files = FakeFiles::new(seed);
    Log::create(&files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
    let region = Arc::new(region());
    let (log, _) = open_shared(&files, &region).expect("a new log opens");
    (files, region, log)
}

/// Four acknowledged frames, of whose writes to the disk one never arrived.
pub(crate) fn with_a_lost_write(lost: u64) -> (FakeFiles, Model) {
    let (files, _region, log) = new_log(1);
    let mut model = Model::default();
    files.fail(Fault { operation: Operation::Write, skip: lost, effect: Effect::LostWrite });
    for _ in 0..4 {
        model.put(&log, 500).expect("there is room");
        log.commit(log.marks().tail).expect("the disk says that it is sound");
    }
    model.note(&log);
    assert_eq!(files.faults_fired(), 1);
    (files, model)
}

/// A payload that says which one it is.
pub(crate) fn payload(number: u64, bytes: usize) -> Vec<u8> {
    let mut payload = vec![0; bytes.max(8)];
    Random::new(number).fill(&mut payload);
    payload[..8].copy_from_slice(&number.to_le_bytes());
    payload
}

/// The frames of data a log holds.
pub(crate) fn contents(log: &Log) -> Vec<Put> {
    let marks = log.marks();
    let frames = log.frames(marks.released, marks.tail);
    let data = frames.iter().filter(|frame| frame.header.kind == Kind::Data);
    data.map(|frame| Put::of(&frame)).collect()
}

impl Model {
    /// Appends one frame to both.
    pub(crate) fn put(&mut self, log: &Log, bytes: usize) -> Result<(), AppendError> {
        let payload = payload(self.next, bytes);
        let (one, two) = payload.split_at(payload.len() / 3);
        let appended = log.append(1, &[one, two])?;
        self.next += 1;
        self.puts.push(Put { lsn: appended.lsn, end: appended.end, payload });
        Ok(())
    }

    /// Appends, draining and releasing as often as need be.
    pub(crate) fn put_surely(&mut self, log: &Log, bytes: usize) -> Result<(), Failure> {
        loop {
            match self.put(log, bytes) {
                Ok(()) => return Ok(()),
                Err(AppendError::Full) => {
                    let drained = log.drain();
                    self.note(log);
                    drained.map_err(Failure::Commit)?;
                    self.apply(log)?;
                }
                Err(error) => return Err(Failure::Append(error)),
            }
        }
    }

    /// Appends, draining as often as need be, with a reader that does nothing.
    pub(crate) fn put_surely_unread(&mut self, log: &Log, bytes: usize) -> Result<(), Failure> {
        while let Err(error) = self.put(log, bytes) {
            assert!(matches!(error, AppendError::Full), "{error:?}");
            log.drain().map_err(Failure::Commit)?;
            self.note(log);
        }
        Ok(())
    }

    /// The reader has applied everything that is durable.
    pub(crate) fn apply(&mut self, log: &Log) -> Result<(), Failure> {
        let durable = log.marks().durable;
        log.mark(durable).map_err(Failure::Append)?;
        self.marked = self.marked.max(durable.get());
        log.release(durable);
        Ok(())
    }

    /// Remembers what the log says is durable.
    pub(crate) fn note(&mut self, log: &Log) {
        self.durable = self.durable.max(log.marks().durable.get());
    }

    /// The checker: a recovered log holds every durable frame, is a prefix of what was appended,
    /// and holds nothing else. With `all`, nothing at all may be missing (the region survived).
    pub(crate) fn check(&self, log: &Log, all: bool) -> Result<(), String> {
        let marks = log.marks();
        let found = contents(log);
        if marks.released.get() > self.marked {
            return Err(format!("released {} but marked {}", marks.released, self.marked));
        }
        let start = self.puts.partition_point(|put| put.lsn < marks.released);
        let expected = &self.puts[start..];
        if found.len() > expected.len() || found != expected[..found.len()] {
            return Err(format!(
                "not a prefix: {} frames, {}",
                found.len(),
                differ(&found, expected)
            ));
        }
        let missing = expected.get(found.len());
        match missing {
            Some(put) if all => Err(format!("the frame at {} is missing", put.lsn)),
            Some(put) if put.end.get() <= self.durable => {
                Err(format!("the durable frame at {} is missing", put.lsn))
            }
            _ => Ok(()),
        }
    }

    /// Takes a recovered log for the truth: what was not durable may be gone.
    pub(crate) fn adopt(&mut self, log: &Log, recovery: &Recovery) {
        self.puts.retain(|put| put.end <= recovery.tail);
        self.note(log);
    }
}

fn differ(found: &[Put], expected: &[Put]) -> String {
    let at = found.iter().zip(expected).position(|(one, other)| one != other);
    at.map_or("too many".to_owned(), |at| {
        format!("frame {at} found at {}, expected at {}", found[at].lsn, expected[at].lsn)
    })
}

/// Why a workload stopped. What is in it is only ever printed.
#[derive(Debug)]
#[allow(dead_code)]
pub(crate) enum Failure {
    Create(CreateError),
    Open(OpenError),
    Append(AppendError),
    Commit(CommitError),
    /// The checker found this.
    Wrong(String),
}

impl Failure {
    /// Whether the power was cut, which is what was asked for.
    pub(crate) fn is_power_cut(&self) -> bool {
        match self {
            Failure::Create(CreateError::Io(error)) | Failure::Open(OpenError::Io(error)) => {
                is_power_cut(error)
            }
            Failure::Append(AppendError::Poisoned(error))
            | Failure::Commit(CommitError::Poisoned(error) | CommitError::Unprepared(error)) => {
                is_power_cut(error)
            }
            _ => false,
        }
    }
}

/// One random step of a workload.
pub(crate) fn step(model: &mut Model, log: &Log, random: &mut Random) -> Result<(), Failure> {
    let done = match random.below(100) {
        0..55 => {
            let bytes = if random.chance(8) { random.below(30_000) } else { random.below(3_000) };
            model.put_surely(log, bytes as usize)
        }
        55..75 => log.commit(log.marks().tail).map_err(Failure::Commit),
        75..84 => log.drain().map(|_| ()).map_err(Failure::Commit),
        84..92 => model.apply(log),
        _ => log.prepare().map(|_| ()).map_err(Failure::Commit),
    };
    model.note(log);
    done
}

/// Prints what is needed to see a failure again.
pub(crate) fn replay(test: &str, seed: u64) -> String {
    format!("replay: HOLDFAST_SEED={seed} cargo test -p holdfast-log --test it {test}")
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

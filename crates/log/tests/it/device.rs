//! Logs that stay on their device, what is put into them, and the loop of power cuts.

use std::sync::Arc;
use std::time::Duration;

use holdfast_io::Files;
use holdfast_io::fake::{FakeClock, FakeFiles, Mood, Sectors, is_power_cut};
use holdfast_log::{
    AppendError, CreateError, Cursor, CursorError, Log, LogConfig, OpenError, Recovery, Retention,
};

use crate::support::{CONFIG, IDENTITY, Put, payload, region_of};

/// A log that stays on its device.
pub(crate) const ON_DEVICE: LogConfig = LogConfig { retention: Retention::OnDevice, ..CONFIG };

/// All that a disk may make of what it had not synced.
pub(crate) const MOODS: [Mood; 4] = [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter];

/// Opens a log with a ring of its own.
pub(crate) fn open(
    files: &FakeFiles,
    config: LogConfig,
) -> Result<(Arc<Log>, Recovery), OpenError> {
    let region = Arc::new(region_of(IDENTITY, 4 * config.segment_bytes));
    let files: Arc<dyn Files> = Arc::new(files.clone());
    let (log, recovery) = Log::open(files, region, Arc::new(FakeClock::default()), config)?;
    Ok((Arc::new(log), recovery))
}

/// Makes a log and opens it.
pub(crate) fn new_log(seed: u64, config: LogConfig) -> (FakeFiles, Arc<Log>) {
    let files = FakeFiles::new(seed);
    Log::create(&files, IDENTITY, &config).expect("an empty disk takes a log");
    let (log, _) = open(&files, config).expect("a new log opens");
    (files, log)
}

/// Makes the log unless it is there, and opens it; None if the power goes.
pub(crate) fn made(files: &FakeFiles, config: LogConfig) -> Option<Arc<Log>> {
    let made = Log::create(files, IDENTITY, &config);
    made.err().is_none_or(|error| matches!(error, CreateError::Exists)).then_some(())?;
    match open(files, config) {
        Ok((log, _)) => Some(log),
        Err(OpenError::Io(error)) if is_power_cut(&error) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Appends one, making room by draining; None if the log's disk has failed.
pub(crate) fn one(log: &Log, number: u64) -> Option<Put> {
    let payload = payload(number, (number * 397 % 9_000) as usize);
    loop {
        match log.append(1, &[&payload]) {
            Ok(at) => return Some(Put { lsn: at.lsn, end: at.end, payload }),
            Err(AppendError::Full) => {
                log.wait_for_room(payload.len() as u64, Duration::MAX).ok()?
            }
            Err(_) => return None,
        }
    }
}

/// Appends these.
pub(crate) fn append(log: &Log, numbers: std::ops::Range<u64>) -> Vec<Put> {
    numbers.map(|number| one(log, number).expect("the disk is sound")).collect()
}

/// Appends and commits one after the other until the log is so long.
pub(crate) fn fill(log: &Log, first: u64, bytes: u64) -> Vec<Put> {
    let mut puts: Vec<Put> = Vec::new();
    while log.marks().tail.get() < bytes {
        let put = one(log, first + puts.len() as u64).expect("the disk is sound");
        log.commit(put.end).expect("the disk is sound");
        puts.push(put);
    }
    puts
}

/// Everything that is durable from where the cursor is.
pub(crate) fn rest(cursor: &mut Cursor) -> Vec<Put> {
    let (found, error) = read_on(cursor);
    assert!(error.is_none(), "{error:?}");
    found
}

/// Everything that a cursor finds, up to the first error.
pub(crate) fn read(log: &Arc<Log>) -> (Vec<Put>, Option<CursorError>) {
    read_on(&mut log.cursor(log.first()))
}

/// Everything that is durable from where the cursor is, up to the first error.
pub(crate) fn read_on(cursor: &mut Cursor) -> (Vec<Put>, Option<CursorError>) {
    let mut found = Vec::new();
    loop {
        match cursor.next_frame() {
            Ok(None) => return (found, None),
            Err(error) => return (found, Some(error)),
            Ok(Some(frame)) => found.push(Put::of(&frame)),
        }
    }
}

/// Makes the log unless it is there, checks that it begins with `durable`, goes on with it so
/// often, and leaves in `durable` what is; None if the power goes.
pub(crate) fn life(
    files: &FakeFiles,
    config: LogConfig,
    durable: &mut Vec<Put>,
    count: u64,
) -> Option<()> {
    let log = made(files, config)?;
    log.commit(log.marks().tail).ok()?;
    let (found, error) = read(&log);
    assert!(found.starts_with(durable), "acknowledged as durable, and not there: {error:?}");
    *durable = found;
    for _ in 0..count {
        let put = one(&log, durable.len() as u64)?;
        log.commit(put.end).ok()?;
        durable.push(put);
        log.prepare().ok()?;
    }
    log.close().ok()
}

/// Cuts the power at every operation of a life on a new disk; another follows on each disk that may
/// be left, with what was known, and the number of the cut. Returns how many these were.
pub(crate) fn at_every_power_cut<K: Clone + Default>(
    seed: u64,
    life: impl Fn(&FakeFiles, &mut K) -> Option<()>,
    another: impl Fn(&FakeFiles, &mut K, u64) -> Option<()>,
) -> u64 {
    let whole = FakeFiles::new(seed);
    life(&whole, &mut K::default()).expect("nothing is in the way");
    for cut in 1..=whole.operations() {
        let files = FakeFiles::new(seed);
        files.set_sectors(if cut % 3 == 0 { Sectors::Garbage } else { Sectors::Whole });
        files.cut_power_at(cut);
        let mut known = K::default();
        assert!(life(&files, &mut known).is_none(), "cut {cut} was not reached");
        for mood in MOODS {
            let image = files.after_power_cut_in(mood, seed ^ cut);
            let survived = another(&image, &mut known.clone(), cut);
            assert!(survived.is_some(), "seed {seed} cut {cut} {mood:?}");
        }
    }
    whole.operations() * MOODS.len() as u64
}

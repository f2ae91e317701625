//! A log on its device that is damaged there, and what is left of it.

use std::path::Path;
use std::sync::Arc;

use holdfast_io::fake::{FakeClock, FakeFiles, Mood};
use holdfast_io::{Files, OpenHow};
use holdfast_log::{
    AppendError, CursorError, Log, LogConfig, Lsn, OpenError, Parity, Policy, Recovery, Retention,
    Scanned,
};

use crate::support::{CONFIG, IDENTITY, Put, payload, region_of};

/// Where frames start in a segment file.
pub(crate) const FRAMES_OFFSET: u64 = 4096;
/// What is lost at once.
pub(crate) const BLOCK: u64 = 4096;

/// A log with parity, in segments of two stripes.
pub(crate) const STRIPED: LogConfig = LogConfig {
    segment_bytes: 512 << 10,
    dirty_bytes_max: 512 << 10,
    retention: Retention::OnDevice,
    scan: Scanned::Whole,
    parity: Parity::TenPercent,
    ..CONFIG
};
/// The same in the smallest segments, which are one short stripe each.
pub(crate) const SHORT: LogConfig =
    LogConfig { segment_bytes: CONFIG.segment_bytes, dirty_bytes_max: 96 << 10, ..STRIPED };
/// Without parity.
pub(crate) const PLAIN: LogConfig = LogConfig { parity: Parity::None, ..SHORT };

/// Another policy.
pub(crate) fn with(config: LogConfig, policy: Policy) -> LogConfig {
    LogConfig { policy, ..config }
}

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

/// Appends one, making room by draining; None if the log's disk has failed.
pub(crate) fn one(log: &Log, number: u64) -> Option<Put> {
    let payload = payload(number, (number * 397 % 9_000) as usize);
    loop {
        match log.append(1, &[&payload]) {
            Ok(at) => return Some(Put { lsn: at.lsn, end: at.end, payload }),
            Err(AppendError::Full) => log.wait_for_room(payload.len() as u64).ok()?,
            Err(_) => return None,
        }
    }
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

/// A log of so many bytes that was closed.
pub(crate) fn closed(config: LogConfig, bytes: u64) -> (FakeFiles, Vec<Put>) {
    let (files, log) = new_log(1, config);
    let puts = fill(&log, 0, bytes);
    log.close().expect("the disk is sound");
    (files, puts)
}

/// Everything that a cursor finds, up to the first error.
pub(crate) fn read(log: &Arc<Log>) -> (Vec<Put>, Option<CursorError>) {
    let (mut cursor, mut found) = (log.cursor(log.first()), Vec::new());
    loop {
        match cursor.next_frame() {
            Ok(None) => return (found, None),
            Err(error) => return (found, Some(error)),
            Ok(Some(frame)) => {
                let (lsn, end) = (frame.header.lsn, frame.end());
                found.push(Put { lsn, end, payload: frame.payload.to_vec() });
            }
        }
    }
}

/// A copy of a disk.
pub(crate) fn copy(files: &FakeFiles) -> FakeFiles {
    files.after_power_cut_in(Mood::KeepAll, 0)
}

/// The file that holds a position, and where in it.
pub(crate) fn place(config: LogConfig, lsn: Lsn) -> (String, u64) {
    let number = lsn.get() / config.segment_bytes;
    (format!("segment-{number:08}"), FRAMES_OFFSET + lsn.get() % config.segment_bytes)
}

/// Overwrites bytes of a file with noise.
pub(crate) fn spoil(files: &FakeFiles, name: &str, offset: u64, bytes: u64) {
    let noise: Vec<u8> = (0..bytes).map(|at| (at * 31 + offset) as u8 | 1).collect();
    overwrite(files, name, offset, &noise);
}

/// Overwrites a stretch of the log that lies in one segment.
pub(crate) fn spoil_at(files: &FakeFiles, config: LogConfig, lsn: Lsn, bytes: u64) {
    let (name, offset) = place(config, lsn);
    spoil(files, &name, offset, bytes);
}

/// Overwrites bytes of a file, durably.
pub(crate) fn overwrite(files: &FakeFiles, name: &str, offset: u64, bytes: &[u8]) {
    let how = OpenHow { write: true, ..OpenHow::default() };
    let file = files.open(Path::new(name), how).expect("it is there");
    file.write_all_at(bytes, offset).expect("the disk is sound");
    file.sync_data().expect("the disk is sound");
}

/// Makes a file with these bytes.
pub(crate) fn overwrite_new(files: &FakeFiles, name: &str, bytes: &[u8]) {
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    drop(files.open(Path::new(name), how).expect("there is room"));
    overwrite(files, name, 0, bytes);
}

/// All bytes of a file.
pub(crate) fn bytes_of(files: &FakeFiles, name: &str) -> Vec<u8> {
    let file = files.open(Path::new(name), OpenHow::default()).expect("it is there");
    let mut bytes = vec![0; file.metadata().expect("it is open").size_bytes as usize];
    file.read_full_at(&mut bytes, 0).expect("the disk is sound");
    bytes
}

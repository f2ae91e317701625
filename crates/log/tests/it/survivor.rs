//! A log on its device that is damaged there, and what is left of it.

use std::path::Path;

use holdfast_io::fake::{FakeFiles, Mood};
use holdfast_io::{Files, OpenHow};
use holdfast_log::{LogConfig, Lsn, Parity, Policy, Retention, Scanned};

use crate::device::{fill, new_log};
use crate::support::{CONFIG, Put};

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

/// A log of so many bytes that was closed.
pub(crate) fn closed(config: LogConfig, bytes: u64) -> (FakeFiles, Vec<Put>) {
    let (files, log) = new_log(1, config);
    let puts = fill(&log, 0, bytes);
    log.close().expect("the disk is sound");
    (files, puts)
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

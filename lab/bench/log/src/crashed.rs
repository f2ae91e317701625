//! This log after a crash: how fast its segments are scanned, and how much memory that takes.
//!
//! Promise: a process of its own opens the log and scans all of it, so that its peak of memory is
//! that of opening; it ends without closing, so that the next finds the same.
//! Never: reads a record.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use holdfast_bench_common::clock::Clock;
use holdfast_bench_common::{child, output};
use holdfast_wal::format::MessagePack;
use holdfast_wal::{Log, Options, Scanned};

use crate::Failure;
use crate::record::Record;

/// What an open took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Opened {
    pub(crate) seconds: f64,
    pub(crate) scanned_bytes: f64,
    /// The most memory that the process had.
    pub(crate) peak_kib: f64,
}

impl Opened {
    pub(crate) fn scanned_gb_per_s(&self) -> f64 {
        self.scanned_bytes / self.seconds / 1e9
    }
}

/// Has the log in a folder opened.
pub(crate) fn open(folder: &Path) -> Result<Opened, Failure> {
    let said = child::run([OsStr::new("--open"), folder.as_os_str()])?;
    match child::numbers(&said)?[..] {
        [seconds, scanned_bytes, peak_kib] => Ok(Opened { seconds, scanned_bytes, peak_kib }),
        _ => Err(format!("not what an open took: {said}").into()),
    }
}

/// What that process does.
pub(crate) fn report(folder: &Path) -> Result<(), Failure> {
    let clock = Clock::start();
    let options = Options::new().with_scan(Scanned::Whole);
    let (log, found) = Log::<Record, MessagePack>::open(folder, &options)?;
    let seconds = clock.wall_s();
    let peak_kib = peak_kib(&fs::read_to_string("/proc/self/status")?).ok_or("no peak")?;
    output::numbers(&[seconds, found.bytes_scanned as f64, peak_kib])?;
    // As a process that is killed: nothing is closed.
    std::mem::forget(log);
    Ok(())
}

fn peak_kib(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

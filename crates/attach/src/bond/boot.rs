//! Which run of the system this is, and since when.
//!
//! Promise: two runs differ.
//! Never: is asked twice for one decision.

use holdfast_machine::probe::run_text;
use holdfast_memory::boot_id;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// A run of the operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Boot {
    /// Its number, as text.
    pub id: String,
    /// When it began, nanoseconds since 1970; 0 if nobody knows.
    pub began_ns: i64,
}

impl Boot {
    /// This one.
    pub(crate) fn current() -> io::Result<Boot> {
        if let Some(told) = told() {
            return Ok(told);
        }
        Ok(Boot { id: run_text(boot_id()?), began_ns: began_ns() })
    }
}

/// The present moment, nanoseconds since 1970.
pub fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_nanos());
    i64::try_from(now).unwrap_or(i64::MAX)
}

/// What a test says that the run is: `ID NANOSECONDS`. A build for users listens to nobody.
fn told() -> Option<Boot> {
    let told = cfg!(debug_assertions).then(|| std::env::var("HOLDFAST_TEST_BOOT").ok())??;
    let (id, began) = told.split_once(' ')?;
    Some(Boot { id: id.to_owned(), began_ns: began.parse().ok()? })
}

/// The second in which the kernel started, as its clock of today has it.
fn began_ns() -> i64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("btime "));
    let seconds: i64 = line.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000)
}

//! What a benchmark ran on: machine, commit, moment.
//!
//! Promise: what cannot be found out is `unknown` or empty, never an error.
//! Never: looks at anything that says who runs it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The machine under a benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Model name of the first processor.
    pub cpu: String,
    /// Processors this process may use.
    pub cores: usize,
    /// Kernel release.
    pub kernel: String,
    /// What the disk was, or that none was used.
    pub disk: String,
}

impl Machine {
    /// This machine, with the disk that the benchmark uses, in words.
    #[must_use]
    pub fn here(disk: &str) -> Machine {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name"));
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        Machine {
            cpu: model.map_or("unknown", |rest| rest.trim_matches([' ', '\t', ':'])).into(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease"),
            disk: disk.into(),
        }
    }
}

/// Commit of the source tree that this was built in, or `unknown`.
pub(crate) fn commit() -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let git = Command::new("git").arg("-C").arg(here).args(["rev-parse", "HEAD"]).output();
    let said = git.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let said = said.and_then(|bytes| String::from_utf8(bytes).ok());
    said.map_or_else(|| "unknown".into(), |commit| commit.trim().to_owned())
}

/// Now, ISO 8601.
pub(crate) fn utc_now() -> String {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    utc(since_1970.as_secs())
}

/// Seconds since 1970 as ISO 8601. Days are counted in eras of 400 years that begin in March,
/// which puts the leap day at the end of a year.
#[must_use]
pub fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests;

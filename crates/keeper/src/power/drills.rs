//! The drills of this machine: the file that has all of them, a line each.
//!
//! Promise: only a drill that was passed, and after which none has failed, proves anything; one
//! that is to come, or that cannot be read, proves nothing.
//! Never: drills.

use holdfast_io::private;
use holdfast_machine::bounded;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// More are not kept: a drill a day is noted for years.
const KEPT_MAX: usize = 1000;

/// No file of drills is as long.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// What a drill has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Drill {
    /// When it was, seconds since 1970.
    pub(crate) when_s: u64,
    /// All got to the disks in time.
    pub(crate) is_passed: bool,
    /// The logs that it was about.
    pub(crate) logs: Vec<PathBuf>,
    /// How many bytes.
    pub(crate) bytes: u64,
    /// How long that took, in milliseconds.
    pub(crate) took_ms: u64,
    /// How long it may have taken, in milliseconds.
    pub(crate) had_ms: u64,
    /// How long it took to have every front end give its lease up, in milliseconds.
    pub(crate) given_up_ms: u64,
}

impl Drill {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let Drill { bytes, took_ms, had_ms, given_up_ms, .. } = self;
        let how = if self.is_passed { "passed" } else { "failed" };
        let bytes = holdfast_config::sizes::rounded(*bytes);
        let ago = match self.ago_ms() {
            Some(ms) => format!("{} days ago", ms / 86_400_000),
            None => "at a time to come, by the clock of this machine".to_owned(),
        };
        format!(
            "{how} {ago}: {bytes} were on the disks after {took_ms} of {had_ms} ms, and leases \
             were given up within {given_up_ms} ms"
        )
    }

    /// Whether it took no longer than it may.
    pub(crate) fn is_in_time(&self) -> bool {
        self.took_ms <= self.had_ms && self.given_up_ms <= self.had_ms
    }

    fn ago_ms(&self) -> Option<u64> {
        now_s().checked_sub(self.when_s).map(|seconds| seconds * 1000)
    }
}

/// All drills.
#[derive(Debug)]
pub(crate) struct Drills {
    path: PathBuf,
    newest: Mutex<Option<Drill>>,
}

impl Drills {
    /// Those in a file; none, if there is none.
    pub(crate) fn of(path: &Path) -> Drills {
        let read = bounded::read(path, newest);
        let read = read.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let newest = read.unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "the drills so far prove nothing");
            None
        });
        Drills { path: path.to_owned(), newest: Mutex::new(newest) }
    }

    /// The last one.
    pub(crate) fn newest(&self) -> Option<Drill> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long ago it was, in milliseconds, if it was passed, and about all of these logs.
    pub(crate) fn passed_ms_ago(&self, logs: &[PathBuf]) -> Option<u64> {
        let is_about_all = |it: &Drill| logs.iter().all(|log| it.logs.contains(log));
        let proves = |it: &Drill| it.is_passed && it.is_in_time() && is_about_all(it);
        self.newest().filter(proves)?.ago_ms()
    }

    /// Notes another. One that failed counts, noted or not.
    pub(crate) fn add(&self, drill: &Drill) -> io::Result<()> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if !drill.is_passed {
            *newest = Some(drill.clone());
        }
        private::public_directory(self.path.parent().unwrap_or(Path::new("/")))?;
        let line = serde_json::to_string(drill).expect("plain data");
        let mut lines = lines(&self.path).unwrap_or_default();
        lines.push(line);
        let first = lines.len().saturating_sub(KEPT_MAX);
        private::replace(&self.path, (lines[first..].join("\n") + "\n").as_bytes())?;
        *newest = Some(drill.clone());
        Ok(())
    }
}

fn newest(path: &Path) -> io::Result<Option<Drill>> {
    let lines = lines(path)?;
    Ok(lines.last().map(|line| serde_json::from_str(line)).transpose()?)
}

fn lines(path: &Path) -> io::Result<Vec<String>> {
    let file = match private::open(path, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// By the clock that people set.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs())
}

#[cfg(test)]
mod tests;

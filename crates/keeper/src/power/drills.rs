//! The drills of this machine: the file that has all of them, a line each.
//!
//! Promise: only a drill that was passed, and after which none has failed, proves anything, and
//! that of the logs that it was about, with no more memory than they had; one that is to come, or
//! that cannot be read, proves nothing. A file that has anything but drills stays as it is.
//! Never: drills.

use holdfast_io::private;
use holdfast_machine::bounded;
use holdfast_power::monitor::Shown;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// More are not kept: a drill a day is noted for years.
const KEPT_MAX: usize = 1000;

/// No file of drills is as long.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// A log, and how much its memory has room for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "NotedLog")]
pub(crate) struct Log {
    pub(crate) path: PathBuf,
    pub(crate) ring_bytes: u64,
}

/// A log as it is noted. Of the earliest only the place is, which proves nothing.
#[derive(Deserialize)]
#[serde(untagged)]
enum NotedLog {
    Place(PathBuf),
    Log { path: PathBuf, ring_bytes: u64 },
}

impl From<NotedLog> for Log {
    fn from(noted: NotedLog) -> Log {
        match noted {
            NotedLog::Place(path) => Log { path, ring_bytes: 0 },
            NotedLog::Log { path, ring_bytes } => Log { path, ring_bytes },
        }
    }
}

/// What a drill has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Drill {
    /// When it was, seconds since 1970.
    pub(crate) when_s: u64,
    /// All got to the disks in time.
    pub(crate) is_passed: bool,
    /// The logs that it was about.
    pub(crate) logs: Vec<Log>,
    /// How many bytes.
    pub(crate) bytes: u64,
    /// How long that took, in milliseconds.
    pub(crate) took_ms: u64,
    /// How long it may have taken, in milliseconds.
    pub(crate) had_ms: u64,
    /// How long it took to have every front end give its lease up, in milliseconds.
    pub(crate) given_up_ms: u64,
    /// Why it came to no end, if it did not.
    #[serde(default)]
    pub(crate) stopped: Option<String>,
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
        if let Some(why) = &self.stopped {
            return format!("{how} {ago}: {why}");
        }
        format!(
            "{how} {ago}: {bytes} were on the disks after {took_ms} of {had_ms} ms, and leases \
             were given up within {given_up_ms} ms"
        )
    }

    /// Whether it took no longer than it may.
    pub(crate) fn is_in_time(&self) -> bool {
        self.took_ms <= self.had_ms && self.given_up_ms <= self.had_ms
    }

    /// What it has shown of these logs.
    fn shown(&self, logs: &[Log]) -> Option<Shown> {
        let was_in_it = |log: &Log| {
            self.logs.iter().any(|it| it.path == log.path && it.ring_bytes >= log.ring_bytes)
        };
        let proves = self.is_passed && self.is_in_time() && logs.iter().all(was_in_it);
        let bytes_per_s = self.bytes.saturating_mul(1000).checked_div(self.took_ms)?;
        // What has written nothing has shown nothing.
        let proves = proves && bytes_per_s > 0;
        let ago_ms = self.ago_ms().filter(|_| proves)?;
        Some(Shown { ago_ms, drain_ms: self.had_ms, bytes_per_s })
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
    /// Why those in the file prove nothing.
    unread: Option<String>,
}

impl Drills {
    /// Those in a file; none, if there is none.
    pub(crate) fn of(path: &Path) -> Drills {
        let read = bounded::read(path, all);
        let read = read.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let why = |error: &io::Error| format!("{} proves nothing: {error}", path.display());
        let unread = read.as_ref().err().map(why);
        unread.iter().for_each(|why| tracing::warn!("drills: {why}"));
        let newest = read.unwrap_or_default().pop();
        Drills { path: path.to_owned(), newest: Mutex::new(newest), unread }
    }

    /// The last one, or why there is none, for people.
    pub(crate) fn text(&self) -> Option<String> {
        self.newest().map(|drill| drill.text()).or_else(|| self.unread.clone())
    }

    /// The last one.
    pub(crate) fn newest(&self) -> Option<Drill> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it has shown, if it was passed, of all of these logs.
    pub(crate) fn shown(&self, logs: &[Log]) -> Option<Shown> {
        self.newest()?.shown(logs)
    }

    /// Notes another. One that failed counts, noted or not.
    pub(crate) fn add(&self, drill: &Drill) -> io::Result<()> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if !drill.is_passed {
            *newest = Some(drill.clone());
        }
        private::public_directory(self.path.parent().unwrap_or(Path::new("/")))?;
        let mut drills = all(&self.path)?;
        drills.push(drill.clone());
        let first = drills.len().saturating_sub(KEPT_MAX);
        let line = |drill| serde_json::to_string(drill).expect("plain data") + "\n";
        let text: String = drills[first..].iter().map(line).collect();
        private::replace(&self.path, text.as_bytes())?;
        *newest = Some(drill.clone());
        Ok(())
    }
}

/// All drills in a file that has nothing else.
fn all(path: &Path) -> io::Result<Vec<Drill>> {
    let file = match private::open(path, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    let drill = |(at, line): (usize, &str)| {
        let other = |error| format!("line {} is no drill: {error}", at + 1);
        serde_json::from_str(line).map_err(|error| io::Error::other(other(error)))
    };
    text.lines().enumerate().map(drill).collect()
}

/// By the clock that people set.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs())
}

#[cfg(test)]
mod tests;

//! Progress on standard error.
//!
//! Promise: one line per step, with the seconds since the start, so that a log file reads as well
//! as a terminal.
//! Never: writes to standard output, which belongs to the result.

use std::io::Write;
use std::time::Instant;

/// The teller of progress. Standard error that cannot be written to is no reason to stop.
#[derive(Clone, Copy)]
pub(crate) struct Progress {
    started: Instant,
}

impl Progress {
    /// Starts counting now.
    pub(crate) fn start() -> Progress {
        Progress { started: Instant::now() }
    }

    /// Seconds since the start.
    pub(crate) fn elapsed_s(self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// Says one line.
    pub(crate) fn say(self, line: &str) {
        let _unwritable = writeln!(std::io::stderr(), "[{:>4} s] {line}", self.elapsed_s());
    }
}

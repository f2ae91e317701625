//! A process that serves, or is about to.
//!
//! Promise: one that was told to end and does not is late, once.
//! Never: starts a process, or signals one.

use crate::supervisor::restart::Death;
use holdfast_config::problem::Problem;
use std::time::{Duration, Instant};

/// What the keeper knows of a process of its own.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    started: Instant,
    /// It has said that it serves.
    pub(crate) was_ready: bool,
    /// Why it will end, as it said.
    pub(crate) fault: Option<Problem>,
    /// Told to end; killed then.
    kill_at: Option<Instant>,
}

impl Process {
    /// One that was started just now.
    pub(crate) fn new(pid: u32) -> Process {
        let started = Instant::now();
        Process { pid, started, was_ready: false, fault: None, kill_at: None }
    }

    pub(crate) fn lived(&self) -> Duration {
        self.started.elapsed()
    }

    /// It was told to end, and has so long.
    pub(crate) fn is_to_end_within(&mut self, patience: Duration) {
        self.kill_at = Some(Instant::now() + patience);
    }

    /// True from then on.
    pub(crate) fn is_to_end(&self) -> bool {
        self.kill_at.is_some()
    }

    /// When it has had time enough to end.
    pub(crate) fn kill_at(&self) -> Option<Instant> {
        self.kill_at
    }

    /// True, once, when that moment has come.
    pub(crate) fn is_late(&mut self, now: Instant) -> bool {
        self.kill_at.take_if(|at| *at <= now).is_some()
    }

    /// Whether it serves, and nothing ends it already.
    pub(crate) fn goes_on(&self) -> bool {
        self.was_ready && !self.is_to_end()
    }

    /// How it died.
    pub(crate) fn death(&self, was_killed: bool) -> Death {
        Death { lived: self.lived(), was_ready: self.was_ready, was_killed }
    }
}

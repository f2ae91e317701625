//! What is known of a line of processes that serve one thing after the other.
//!
//! Promise: a word for every state in their life, the same in messages and reports, whatever it is
//! that they serve.
//! Never: finds anything out.

use holdfast_config::problem::Problem;
use holdfast_machine::standstill::Standstill;
use std::time::Duration;

/// Where what is served is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The first process is starting, or recovering what was left.
    Starting,
    /// A process serves.
    Serving,
    /// The process died; programs wait for the next one.
    Restarting,
    /// Processes died at every start; programs wait, memory and mount are kept.
    GivenUp,
    /// Unmounted; what is in memory is on its way to disk and home.
    Detaching,
    /// Given back: the home is complete.
    Detached,
    /// It could not be attached, or not be detached; nothing is mounted.
    Failed,
}

impl State {
    /// The word used in messages and reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Serving => "serving",
            State::Restarting => "restarting",
            State::GivenUp => "given up",
            State::Detaching => "detaching",
            State::Detached => "detached",
            State::Failed => "failed",
        }
    }
}

/// What is known of the processes, and of those of this kind alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known<T> {
    /// Where what they serve is in its life.
    pub(crate) state: State,
    /// Why, for `GivenUp` and `Failed`, and what is wrong although one serves.
    pub(crate) problem: Option<Problem>,
    /// The newest complaint.
    pub(crate) last_error: Option<String>,
    /// The process, while there is one.
    pub(crate) pid: Option<u32>,
    /// Those that died and were replaced.
    pub(crate) restarts: u64,
    /// Those that were replaced on request.
    pub(crate) upgrades: u64,
    /// Longest time without one that serves, since the first one did.
    pub(crate) longest_stall: Duration,
    /// What stands still, and why.
    pub(crate) standstills: Vec<Standstill>,
    /// What only this kind has.
    pub(crate) of: T,
}

impl<T> Known<T> {
    /// Of processes of which none has been started.
    pub(crate) fn new(of: T) -> Known<T> {
        Known {
            state: State::Starting,
            problem: None,
            last_error: None,
            pid: None,
            restarts: 0,
            upgrades: 0,
            longest_stall: Duration::ZERO,
            standstills: Vec::new(),
            of,
        }
    }

    /// For reports, rounded up.
    pub(crate) fn longest_stall_ms(&self) -> u64 {
        u64::try_from(self.longest_stall.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
    }

    /// True when nothing more happens unless somebody asks for it.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Detached | State::Failed)
    }

    /// True until the first process has served, or another one after the last.
    pub(crate) fn is_to_serve(&self) -> bool {
        matches!(self.state, State::Starting | State::Restarting)
    }
}

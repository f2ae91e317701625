//! What is known of a volume's or disk's front end.
//!
//! Promise: a word for every state in its life, the same in messages and reports.
//! Never: finds anything out.

use crate::memory::Astray;
use holdfast_config::claims::Verdict;
use holdfast_config::problem::Problem;
use holdfast_machine::standstill::Standstill;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// Where a volume is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The first front end is starting, or recovering what was left.
    Starting,
    /// A front end serves.
    Serving,
    /// The front end died; programs wait for the next one.
    Restarting,
    /// Front ends died at every start; programs wait, memory and mount are kept.
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

    /// True when nothing more happens unless somebody asks for it.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, State::Detached | State::Failed)
    }
}

/// What is known of a volume's front end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Where the volume is in its life.
    pub state: State,
    /// Why, for `GivenUp` and `Failed`.
    pub problem: Option<Problem>,
    /// The newest thing a front end complained about.
    pub last_error: Option<String>,
    /// What recovery said at the last start.
    pub recovery: Option<String>,
    /// What acknowledgements mean, by the front end that has mapped the memory.
    pub verdict: Option<Verdict>,
    /// The process, while there is one.
    pub front_end_pid: Option<u32>,
    /// Front ends that died and were replaced since the volume was attached.
    pub restarts: u64,
    /// Front ends that were replaced on request.
    pub upgrades: u64,
    /// Longest time without a front end that serves, since the first one did.
    pub longest_stall: Duration,
    /// What stands still, and why.
    pub standstills: Vec<Standstill>,
    /// Nobody reaches it any more, wherever else it is mounted.
    pub is_cut_off: bool,
    /// So many processes had nothing but a copy of the mount when it was cut off.
    pub copies_cut_off: usize,
    /// Connections that end with the front end, whatever takes its place.
    pub mortal_connections: u64,
    /// That the memory has lost its name, if it has.
    pub astray: Option<Astray>,
    /// That the log's files are not where they were, if they are not, and what to do.
    pub log_trouble: Option<String>,
    /// Where the home is, if its name does not lead to it.
    pub home_elsewhere: Option<String>,
}

impl Snapshot {
    /// That the home is complete, and where it is, for people.
    pub(crate) fn complete_text(&self, home: &Path) -> String {
        let home = home.display();
        match &self.home_elsewhere {
            None => format!("{home} is complete"),
            Some(there) => format!(
                "its home is complete, and was moved while it was served: it is at {there}, and \
                 what is at {home} is not its home"
            ),
        }
    }

    /// True when nothing more happens to the volume.
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_over()
    }
}

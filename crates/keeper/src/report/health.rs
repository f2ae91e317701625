//! How everything is, in a word.
//!
//! Promise: JSON and the exit code of `status` are the same fact.
//! Never: finds anything out.

use holdfast_config::exit::Exit;
use serde::{Deserialize, Serialize};

/// How everything is, in a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Everything that is configured is served, and nothing stands still.
    #[default]
    Serving,
    /// Something is not, or something does.
    Degraded,
    /// There is no keeper.
    NotRunning,
    /// There is one, and it does not answer.
    NoAnswer,
}

impl Health {
    /// The exit code that says so.
    pub fn exit(self) -> Exit {
        match self {
            Health::Serving => Exit::Ok,
            Health::Degraded => Exit::Degraded,
            Health::NotRunning => Exit::NotRunning,
            Health::NoAnswer => Exit::NoAnswer,
        }
    }
}

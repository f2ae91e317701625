//! Exit codes.
//!
//! Promise: the one list of what the command's exit code can mean; scripts may rely on it.
//! Never: says why; that is what [`crate::problem::Problem`] prints.

use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// What the exit code of `holdfast` says.
///
/// `holdfast run` ends with the code of its command (128 + signal if a signal ended it), or with
/// [`Exit::Run`] if the command was never started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Ok = 0,
    /// The machine refused something: a file, a device, a permission.
    Failed = 1,
    /// The command line or the configuration is wrong; nothing was touched.
    Usage = 2,
    /// The configuration asks for a survival that no class of acknowledgement keeps.
    Claims = 3,
    /// No keeper answers.
    NotRunning = 4,
    /// Somebody else has it: another keeper, another volume, a busy mount point.
    InUse = 5,
    /// A region or log is damaged, of another version, or belongs to something else.
    Damaged = 6,
    /// `status`: not everything that is configured is served, or something stands still.
    Degraded = 7,
    /// A keeper is there, and does not answer.
    NoAnswer = 8,
    /// `holdfast run` could not start its command.
    Run = 125,
    /// Nobody read the result to its end; what was asked for is done.
    Unread = 141,
}

impl Exit {
    /// Every code with its meaning, for the long help.
    pub const HELP: &'static str = "Exit codes: 0 done; 1 the machine refused something; \
        2 wrong command line or configuration; 3 refused by the claims; 4 no keeper is running; \
        5 in use by somebody else; 6 damaged, or of another version; \
        7 `status` shows something that is not served, or stands still; \
        8 a keeper is there and does not answer; \
        125 `run` could not start its command, otherwise `run` ends with its command's code; \
        141 done, and nobody read the result to its end.";

    /// True for a fault that the next attempt meets again, so that restarting is of no use.
    pub fn stays(self) -> bool {
        matches!(self, Exit::Usage | Exit::Claims | Exit::Damaged)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

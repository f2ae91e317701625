//! What is spoken at the control socket.
//!
//! Promise: both ends have the same lines, which read as documented here; a request says of which
//! version it is.
//! Never: sends or hears anything.
//!
//! The protocol is JSON lines. Request: `{"protocol":1,"command":{"mount":{"name":"pgwal"}}}`, with
//! `"configuration":"/etc/holdfast.toml"` from whoever has one.
//! Answers: any number of `{"progress":"..."}`, then `{"done":...}` or `{"failed":{...}}`.

use crate::report::StatusReport;
use holdfast_config::problem::Problem;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The one version of the protocol.
pub(crate) const PROTOCOL: u32 = 1;

/// The first and only line of a client.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    /// [`PROTOCOL`] of the client.
    pub protocol: u32,
    /// What is asked.
    pub command: Command,
    /// The configuration of whoever asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
}

/// What can be asked of a keeper.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Tell everything about every volume.
    Status,
    /// Attach and mount.
    Mount {
        /// The volume.
        name: String,
    },
    /// Unmount, drain, give back.
    Umount {
        /// The volume.
        name: String,
        /// Although programs use it.
        force: bool,
    },
    /// Show whether what memory may hold gets to the disks in time.
    Drill,
    /// Unmount everything and end.
    Shutdown,
    /// Replace the server by this binary, or by the one at the keeper's path.
    UpgradeServer {
        /// The binary.
        binary: Option<PathBuf>,
    },
    /// Replace the front end of a disk by this binary, or by the one at the keeper's path.
    UpgradeDisk {
        /// The disk.
        name: String,
        /// The binary.
        binary: Option<PathBuf>,
    },
    /// Replace the front end of a volume by this binary, or by the one at the keeper's path.
    UpgradeVolume {
        /// The volume.
        name: String,
        /// The binary.
        binary: Option<PathBuf>,
    },
}

/// One line of a keeper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// It is being worked on.
    Progress(String),
    /// It is done.
    Done(Answer),
    /// It failed.
    Failed(Problem),
}

/// What comes of a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A sentence about what was done.
    Text(String),
    /// The status of everything.
    Status(Box<StatusReport>),
}

#[cfg(test)]
mod tests;

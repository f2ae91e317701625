//! What status prints of the keeper.
//!
//! Promise: the same facts as text and as JSON, which only gains fields.
//! Never: finds anything out but about this process.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The keeper that answered.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeeperStatus {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Its socket.
    pub socket: PathBuf,
    /// How long it has been running.
    pub up_s: u64,
    /// Whether it was asked to end.
    #[serde(default)]
    pub is_ending: bool,
    /// What it waits for before it ends.
    #[serde(default)]
    pub waits_for: Vec<String>,
    /// The file that it was started with; none of a keeper that does not say.
    #[serde(default)]
    pub configuration: Option<String>,
    /// How the configuration differs from what it started with, and what to do.
    #[serde(default)]
    pub problem: Option<String>,
}

impl KeeperStatus {
    /// For people.
    pub(super) fn text(&self) -> String {
        let ending = if self.is_ending { ", ending" } else { "" };
        let first = format!("keeper {}, up {} s{ending}\n", self.pid, self.up_s);
        self.waits_for.iter().fold(first, |text, wait| format!("{text}  waits for {wait}\n"))
    }

    /// This process as the keeper.
    pub(crate) fn of_this_process(socket: &Path, up: Duration) -> KeeperStatus {
        KeeperStatus {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            socket: socket.to_owned(),
            up_s: up.as_secs(),
            is_ending: false,
            waits_for: Vec::new(),
            configuration: None,
            problem: None,
        }
    }
}

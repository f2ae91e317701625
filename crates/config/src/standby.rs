//! `[standby]`: several hosts that could serve the same volumes, one at a time.
//!
//! Promise: as for volumes: what is returned was checked without looking at the machine.
//! Never: lets a host take over without a fence.

use crate::values::{check_name, check_path};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Shorter, and a host that is merely busy is taken for dead.
const PATIENCE_MS_MIN: u64 = 100;
const PATIENCE_MS_DEFAULT: u64 = 10_000;
/// How often an owner tells that it lives while a stand-by has patience.
const BEATS: u32 = 10;

/// `[standby]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandbyConfig {
    /// What this host is called.
    pub host: String,
    /// A folder on storage that every host has.
    pub folder: PathBuf,
    /// How long the owner may be silent, in milliseconds. The same on every host.
    #[serde(default = "patience_default")]
    pub patience_ms: u64,
    /// A command that makes sure that another host writes no more; it gets the host's name as its
    /// last argument, and may be run for the same host by several at once.
    pub fence: Vec<String>,
}

fn patience_default() -> u64 {
    PATIENCE_MS_DEFAULT
}

impl StandbyConfig {
    pub(crate) fn check(&self) -> Result<(), String> {
        check_name(&self.host).map_err(|why| format!("host: {why}"))?;
        check_path("folder", &self.folder)?;
        if self.patience_ms < PATIENCE_MS_MIN {
            return Err(format!("patience_ms = {} is below {PATIENCE_MS_MIN}", self.patience_ms));
        }
        match self.fence.first() {
            Some(program) => check_path("fence", Path::new(program)),
            None => Err("fence is empty: name the command that fences the other host off".into()),
        }
    }

    /// How long the owner may be silent.
    pub fn patience(&self) -> Duration {
        Duration::from_millis(self.patience_ms)
    }

    /// How often the owner says that it lives.
    pub fn beat_every(&self) -> Duration {
        self.patience() / BEATS
    }
}

//! What is known of the server.
//!
//! Promise: whoever asks has all of it at once.
//! Never: finds anything out.

use crate::memory::Astray;
use crate::orders::ServerReady;
use crate::supervisor::snapshot::State;
use holdfast_config::problem::Problem;
use holdfast_machine::holders::Holder;
use holdfast_machine::standstill::Standstill;
use std::collections::BTreeMap;
use std::time::Duration;

/// What is known of the server.
#[derive(Clone, Debug)]
pub struct ServerSnapshot {
    /// Where it is in its life.
    pub state: State,
    /// Why, when it was given up.
    pub problem: Option<Problem>,
    /// The newest complaint.
    pub last_error: Option<String>,
    /// What it said at its last start, once there was one.
    pub ready: Option<ServerReady>,
    /// The process, while there is one.
    pub pid: Option<u32>,
    /// Servers that died and were replaced.
    pub restarts: u64,
    /// Servers that were replaced on request.
    pub upgrades: u64,
    /// Longest time without a server that answers, since the first one did.
    pub longest_stall: Duration,
    /// That it stands still, and why.
    pub standstills: Vec<Standstill>,
    /// What of each log that it serves to programs stands still.
    pub logs: BTreeMap<String, Vec<Standstill>>,
    /// The services whose memory has lost its name.
    pub astray: BTreeMap<String, Astray>,
    /// The logs whose files are not where they were, and what to do.
    pub log_troubles: BTreeMap<String, String>,
    /// The tables whose stores the next server would not find: why, and what to do.
    pub store_troubles: BTreeMap<String, Holder>,
    /// Why programs do not find its socket, if they do not, and what to do.
    pub unreached: Option<String>,
}

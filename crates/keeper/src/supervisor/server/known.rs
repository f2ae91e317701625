//! What is known of the server, besides what is known of every process.
//!
//! Promise: whoever asks has all of it at once.
//! Never: finds anything out.

use crate::memory::Astray;
use crate::orders::ServerReady;
use crate::supervisor::life::known::Known;
use holdfast_machine::holders::Holder;
use holdfast_machine::standstill::Standstill;
use std::collections::BTreeMap;

/// What is known of the server.
pub(crate) type KnownServer = Known<OfServer>;

/// What only the server has.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfServer {
    /// What it said at its last start, once there was one.
    pub(crate) ready: Option<ServerReady>,
    /// What of each log that it serves to programs stands still.
    pub(crate) logs: BTreeMap<String, Vec<Standstill>>,
    /// The services whose memory has lost its name.
    pub(crate) astray: BTreeMap<String, Astray>,
    /// The logs whose files are not where they were, and what to do.
    pub(crate) log_troubles: BTreeMap<String, String>,
    /// The tables whose stores the next server would not find: why, and what to do.
    pub(crate) store_troubles: BTreeMap<String, Holder>,
    /// Why programs do not find its socket, if they do not, and what to do.
    pub(crate) unreached: Option<String>,
}

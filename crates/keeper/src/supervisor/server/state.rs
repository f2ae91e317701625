//! What the thread that supervises the server has.
//!
//! Promise: what is known of the server has a place of its own, which everybody may look at.
//! Never: does anything; the files beside it do, each its part.

use super::known::OfServer;
use super::store_place::StorePlace;
use crate::memory::Astray;
use crate::orders::{ServerOrders, ServerReport};
use crate::supervisor::life::Life;
use crate::supervisor::life::process::Process;
use crate::supervisor::life::watched::Watched;
use crate::supervisor::log_place::LogPlace;
use crate::supervisor::pace::Pace;
use crate::supervisor::upgrade::Request;
use holdfast_config::ServedLogConfig;
use holdfast_config::problem::Problem;
use holdfast_io::private::NamedListener;
use holdfast_machine::standstill::Marks;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

/// What the supervising thread hears.
pub(super) enum Event {
    Said(u64, ServerReport),
    Ended(u64, ExitStatus),
    Upgrade(Request),
    Stop,
    /// After [`Event::Stop`]: what has not begun to serve is waited for no longer.
    GiveUp,
}

/// What outlives every server.
pub(super) struct Held {
    pub(super) listener: NamedListener,
    pub(super) directories: Vec<OwnedFd>,
    pub(super) orders: ServerOrders,
    /// The homes of its volumes, by service.
    pub(super) homes: BTreeMap<String, PathBuf>,
    /// What could not even be handed to a server yet.
    pub(super) unserved: Vec<Untaken>,
}

/// A log whose directory could not be taken, and why.
pub(super) struct Untaken {
    pub(super) service: String,
    pub(super) log: ServedLogConfig,
    pub(super) why: Problem,
}

/// A server process.
pub(super) struct Running {
    pub(super) number: u64,
    pub(super) process: Process,
}

/// The supervising thread.
pub(super) struct Supervisor {
    pub(super) held: Held,
    pub(super) life: Life<OfServer>,
    pub(super) watched: Arc<Watched<OfServer>>,
    pub(super) events: Receiver<Event>,
    pub(super) sender: Sender<Event>,
    pub(super) running: Option<Running>,
    pub(super) starts: u64,
    /// When the next one starts, if none runs.
    pub(super) due: Option<Instant>,
    pub(super) is_stopping: bool,
    /// It stood still at the last look.
    pub(super) stands_still: bool,
    /// What earlier looks saw of the logs that it serves to programs.
    pub(super) marks: BTreeMap<String, Marks>,
    /// The services whose memory had lost its name at the last look.
    pub(super) astray: BTreeMap<String, Astray>,
    /// Where the files are that it serves.
    pub(super) places: Places,
    /// What somebody else has.
    pub(super) awaited: Awaited,
    /// What this server was not told to serve, and why.
    pub(super) left_out: Vec<(String, Problem)>,
}

/// Where the files are that a server has open, by service.
#[derive(Default)]
pub(super) struct Places {
    /// Each log that a server has served.
    pub(super) logs: BTreeMap<String, LogPlace>,
    /// The store of each table.
    pub(super) stores: BTreeMap<String, StorePlace>,
}

/// What earlier looks saw of what somebody else has.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// The services that could not be taken up.
    pub(super) services: Vec<String>,
    /// The services that nobody else had at the last look.
    pub(super) free: BTreeSet<String>,
    pub(super) pace: Pace,
}

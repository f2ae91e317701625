//! What the thread that supervises the server has.
//!
//! Promise: whoever waits for a change of what is known of the server hears of each.
//! Never: does anything; the files beside it do, each its part.

use super::snapshot::ServerSnapshot;
use super::store_place::StorePlace;
use crate::log_place::LogPlace;
use crate::memory::{Astray, Memories};
use crate::orders::{ServerOrders, ServerReport};
use crate::pace::Pace;
use crate::pulse::Pulse;
use crate::restart::Deaths;
use crate::stall::Stall;
use crate::supervisor::snapshot::State;
use crate::upgrade::{Request, Upgrade};
use holdfast_config::ServedLogConfig;
use holdfast_config::problem::Problem;
use holdfast_io::private::NamedListener;
use holdfast_machine::holders::Holder;
use holdfast_machine::standstill::Marks;
use holdfast_memory::Medium;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is known, and a bell that rings when it changes.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) snapshot: Mutex<ServerSnapshot>,
    pub(super) changed: Condvar,
    /// Signs of life of whichever server there is.
    pub(super) pulse: Pulse,
    /// Since when there is none, while clients wait.
    pub(super) stall: Stall,
    /// All that the keeper holds, and what of it this one serves, by service.
    pub(super) memories: Arc<Memories>,
    pub(super) media: BTreeMap<String, Medium>,
}

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
    pub(super) pid: u32,
    pub(super) started: Instant,
    pub(super) was_ready: bool,
    pub(super) fault: Option<Problem>,
    /// Told to end; killed then.
    pub(super) kill_at: Option<Instant>,
}

/// The supervising thread.
pub(super) struct Supervisor {
    pub(super) held: Held,
    pub(super) binary: OwnedFd,
    pub(super) shared: Arc<Shared>,
    pub(super) events: Receiver<Event>,
    pub(super) sender: Sender<Event>,
    pub(super) deaths: Deaths,
    pub(super) running: Option<Running>,
    pub(super) starts: u64,
    /// When the next one starts, if none runs.
    pub(super) due: Option<Instant>,
    pub(super) upgrade: Option<Upgrade>,
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
    /// The server was told to end so that the next one takes up more.
    pub(super) is_renewing: bool,
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

impl Shared {
    pub(super) fn new(
        pulse: Pulse,
        memories: Arc<Memories>,
        media: BTreeMap<String, Medium>,
    ) -> Shared {
        let snapshot = ServerSnapshot {
            state: State::Starting,
            problem: None,
            last_error: None,
            ready: None,
            pid: None,
            restarts: 0,
            upgrades: 0,
            longest_stall: Duration::ZERO,
            standstills: Vec::new(),
            logs: BTreeMap::new(),
            astray: BTreeMap::new(),
            log_troubles: BTreeMap::new(),
            store_troubles: BTreeMap::new(),
            unreached: None,
        };
        let snapshot = Mutex::new(snapshot);
        let (changed, stall) = (Condvar::new(), Stall::default());
        Shared { snapshot, changed, pulse, stall, memories, media }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ServerSnapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The services whose memory has lost its name, and how.
    pub(super) fn astray(&self) -> BTreeMap<String, Astray> {
        let astray = |(of, it): (&String, &Medium)| Some((of.clone(), self.memories.astray(it)?));
        self.media.iter().filter_map(astray).collect()
    }

    /// What keeps the memory of a service from having its name, if anything does.
    pub(super) fn hindrance(&self, service: &str) -> Option<Holder> {
        self.memories.hindrance(self.media.get(service)?)
    }

    /// Why a server did not come to serve: see [`Memories::reason`].
    pub(super) fn reason(&self, said: Problem) -> Problem {
        self.media.values().fold(said, |said, medium| self.memories.reason(medium, said))
    }

    /// The first service that is served and whose memory no next server would find. What is left
    /// out as it is does not keep the others from anything.
    pub(super) fn hindered(&self) -> Option<(&String, Holder)> {
        let mut served = self.media.iter().filter(|(_, medium)| self.memories.is_served(medium));
        served.find_map(|(of, medium)| Some((of, self.memories.hindrance(medium)?)))
    }

    pub(super) fn change(&self, with: impl FnOnce(&mut ServerSnapshot)) {
        with(&mut self.lock());
        self.changed.notify_all();
    }
}

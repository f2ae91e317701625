//! What the thread that supervises a front end has.
//!
//! Promise: whoever waits for a change of the snapshot hears of each.
//! Never: does anything; the files beside it do, each its part.

use super::snapshot::Snapshot;
use crate::held::Held;
use crate::log_place::LogPlace;
use crate::memory::{Astray, Memories};
use crate::orders::{Orders, Report, Task};
use crate::pace::Pace;
use crate::pulse::Pulse;
use crate::restart::Deaths;
use crate::stall::Stall;
use crate::upgrade::{Request, Upgrade};
use holdfast_config::problem::Problem;
use holdfast_machine::standstill::Marks;
use holdfast_memory::Medium;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The snapshot, and a bell that rings when it changes.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) snapshot: Mutex<Snapshot>,
    pub(super) changed: Condvar,
    /// Signs of life of whichever front end there is.
    pub(super) pulse: Pulse,
    /// Since when there is none, while programs wait.
    pub(super) stall: Stall,
    /// All that the keeper holds, and what of it is this one's.
    pub(super) memories: Arc<Memories>,
    pub(super) medium: Medium,
}

/// What earlier looks saw of this front end.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) marks: Marks,
    /// What stood still at the last look.
    pub(super) told: bool,
    /// The memory had lost its name at the last look.
    pub(super) astray: bool,
}

/// What the supervising thread hears.
pub(super) enum Event {
    Said(Report),
    Ended(ExitStatus),
    Unmounted,
    CutOff,
    TryAgain,
    LetGo(Problem),
    Upgrade(Request),
}

/// A front-end process that runs.
pub(super) struct Front {
    pub(super) task: Task,
    pub(super) started: Instant,
    pub(super) was_ready: bool,
    pub(super) fault: Option<Problem>,
    /// What became of what was in memory.
    pub(super) drained: Option<String>,
    /// Told to end; killed then.
    pub(super) kill_at: Option<Instant>,
}

/// What the supervising thread is doing.
pub(super) enum Phase {
    /// A process runs.
    Running(Front),
    /// The next one starts then.
    Waiting(Task, Instant),
    /// Nothing runs until somebody asks.
    Idle,
    /// The volume is no longer attached.
    Over,
}

/// The supervising thread.
pub(super) struct Supervisor {
    pub(super) orders: Orders,
    pub(super) held: Held,
    /// What front ends are started from.
    pub(super) binary: OwnedFd,
    pub(super) upgrade: Option<Upgrade>,
    /// The front end was told to end so that the next one takes clients where they come.
    pub(super) is_renewing: bool,
    pub(super) shared: Arc<Shared>,
    pub(super) events: Receiver<Event>,
    pub(super) sender: Sender<Event>,
    pub(super) deaths: Deaths,
    /// The attempts to have back what somebody else has.
    pub(super) pace: Pace,
    /// A front end was started on the mount and may have read requests from it.
    pub(super) has_started: bool,
    /// By a front end of an earlier keeper.
    pub(super) was_served: bool,
    pub(super) was_ever_ready: bool,
    pub(super) is_unmounted: bool,
    /// What was given up is to be tried again as soon as the drain after it has ended.
    pub(super) is_wanted_again: bool,
    /// Why the volume is let go as it is.
    pub(super) let_go: Option<Problem>,
    /// Takes the mount away when the volume never served.
    pub(super) unmount: fn(&Orders),
    pub(super) watch: Watch,
    /// Where its log is, if it has one in a directory of its own.
    pub(super) log_place: LogPlace,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change(&self, with: impl FnOnce(&mut Snapshot)) {
        with(&mut self.lock());
        self.changed.notify_all();
    }

    /// That the memory has lost its name, if it has.
    pub(super) fn astray(&self) -> Option<Astray> {
        self.memories.astray(&self.medium)
    }
}

//! What the thread that supervises a front end has.
//!
//! Promise: what is known of front ends has a place of its own, which everybody may look at.
//! Never: does anything; the files beside it do, each its part.

use super::known::OfFront;
use crate::kept::held::Held;
use crate::memory::Astray;
use crate::orders::{Orders, Report, Task};
use crate::power::Power;
use crate::supervisor::life::Life;
use crate::supervisor::life::process::Process;
use crate::supervisor::life::watched::Watched;
use crate::supervisor::log_place::LogPlace;
use crate::supervisor::pace::Pace;
use crate::supervisor::upgrade::Request;
use holdfast_config::problem::Problem;
use holdfast_machine::standstill::Marks;
use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

/// What earlier looks saw of this front end.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) marks: Marks,
    /// What stood still at the last look.
    pub(super) told: bool,
    /// That the memory had lost its name at the last look.
    pub(super) astray: BTreeMap<String, Astray>,
    /// The home is open to others, and was never closed to them.
    pub(super) has_no_barrier: bool,
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
    pub(super) process: Process,
    /// What became of what was in memory.
    pub(super) drained: Option<String>,
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
    pub(super) life: Life<OfFront>,
    pub(super) watched: Arc<Watched<OfFront>>,
    /// Who gives its front ends a lease.
    pub(super) power: Option<Arc<Power>>,
    pub(super) events: Receiver<Event>,
    pub(super) sender: Sender<Event>,
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

//! A directory volume: an ordinary directory as home, and a log before it.
//!
//! Promise: a change is acknowledged when its frame is stable, seen at once through the overlay,
//! and applied to the home only after the device has the frame.
//! Never: starts a thread, or knows where the log stands; somebody runs
//! [`DirectoryVolume::run_cleaner`], and whoever has the log drains it.

mod cleaning;
mod logging;
mod open;
mod waiting;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

use holdfast_io::{Clock, Files};
use holdfast_log::{CommitLog, Lsn, Marks};

use crate::changes::xattr::Gate;
use crate::clean::aside::PassedOver;
use crate::clean::error::CleanError;
use crate::clean::forecast::Forecast;
use crate::clean::in_turn::InTurn;
use crate::home::settling::Settling;
use crate::home::space::{OwnRoom, SpaceGate};
use crate::home::tried::Tried;
use crate::names::Names;
use crate::names::requests::Noted;
use crate::names::roster::{Entry as RosterEntry, Roster};
use crate::node::Node;
use crate::overlay::kept::KeptFiles;
use crate::overlay::writing::WritingFiles;
use crate::shares::Shares;
use crate::{home::touched, words};
use holdfast_io::tree::{Errno, NodeId};

/// Values of [`words::MOUNT_PAGES`].
const NO_PAGES_KEPT: u64 = 1;
const PAGES_KEPT: u64 = 2;

/// What an acknowledgement means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Stable in the region: as good as its medium.
    Memory,
    /// On the device once a program's `fsync` returns.
    Disk,
}

/// The right to acknowledge from memory, which may end at any time.
pub trait Lease: Send + Sync {
    /// Whether it is held now. Once it is not, what was acknowledged under it is brought to the
    /// device by whoever has taken it back.
    fn is_held(&self) -> bool;

    /// Whether that is going on in a hurry now: the disk is to be left to it.
    fn is_hurried(&self) -> bool;
}

/// What opening a volume found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Records given back to memory because the process before died.
    pub records_replayed: u64,
    /// Bytes applied to the home before service: what a process died in the middle of, or all
    /// that the log had because the machine stopped.
    pub bytes_applied: u64,
}

/// An ordinary directory kept by a log. See the crate's documentation.
pub struct DirectoryVolume {
    pub(crate) home: Arc<dyn Files>,
    pub(crate) log: Arc<dyn CommitLog>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) class: Class,
    /// Whether memory may acknowledge now what has to be on the device otherwise.
    lease: OnceLock<Arc<dyn Lease>>,
    names: RwLock<Names>,
    /// Held while it is counted and noted how often a node is remembered; taken after `names`.
    counting: Mutex<()>,
    cleaning: InTurn,
    waiting_for_room: AtomicU64,
    /// Nobody is there any more who would want to have waited for room.
    lets_go: AtomicBool,
    pub(crate) space: SpaceGate,
    pub(crate) xattrs: Gate,
    /// The longest name that the home takes.
    pub(crate) name_bytes_max: usize,
    /// Whether the home can let two names change places, once it was asked.
    pub(crate) can_exchange: OnceLock<bool>,
    pub(crate) tried: Tried,
    roster: Roster,
    pub(crate) kept_files: KeptFiles,
    pub(crate) writing: WritingFiles,
    pub(crate) shares: Arc<Shares>,
    pub(crate) forecast: Forecast,
    pub(crate) settling: Settling,
}

impl DirectoryVolume {
    /// The home has just been touched.
    pub(crate) fn note_touched(&self) -> Result<(), CleanError> {
        touched::note(&*self.log, &*self.clock)
    }

    /// The names, for looking. In the program that ships a panic ends the process, so the lock's
    /// poison says nothing.
    pub(crate) fn names(&self) -> RwLockReadGuard<'_, Names> {
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names, for changing.
    pub(crate) fn names_mut(&self) -> RwLockWriteGuard<'_, Names> {
        self.names.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn of who counts how often a node is remembered.
    pub(crate) fn counting(&self) -> MutexGuard<'_, ()> {
        self.counting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells status which process serves the volume from now on.
    pub fn served_by(&self, pid: u32) {
        // Where the log cannot be reached there is nobody to be told.
        let _ = self.log.set_word(words::FRONT_END_PID, pid.into());
    }

    /// Notes whether the kernel keeps pages of the mount, for those who serve it later.
    pub(crate) fn note_pages(&self, keeps_pages: bool) -> Result<(), Errno> {
        let value = if keeps_pages { PAGES_KEPT } else { NO_PAGES_KEPT };
        self.log.set_word(words::MOUNT_PAGES, value).map_err(|_| Errno::IO)
    }

    /// What was noted so.
    pub(crate) fn pages_noted(&self) -> Option<bool> {
        match self.log.word(words::MOUNT_PAGES) {
            Ok(PAGES_KEPT) => Some(true),
            Ok(NO_PAGES_KEPT) => Some(false),
            _ => None,
        }
    }

    /// What an acknowledgement of this volume means, where no lease is held.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Has memory acknowledge while this is held, although the volume was opened in
    /// [`Class::Disk`]; set once.
    ///
    /// # Panics
    /// If it was set before.
    pub fn acknowledge_while(&self, lease: Arc<dyn Lease>) {
        assert!(self.lease.set(lease).is_ok(), "a volume has one lease");
    }

    pub(crate) fn holds_lease(&self) -> bool {
        self.lease.get().is_some_and(|lease| lease.is_held())
    }

    pub(crate) fn is_hurried(&self) -> bool {
        self.lease.get().is_some_and(|lease| lease.is_hurried())
    }

    /// The node with this number.
    pub(crate) fn node(&self, id: NodeId) -> Result<Arc<Node>, Errno> {
        if let Some(entry) = self.names().entry(id) {
            return Ok(entry.node.clone());
        }
        let mut names = self.names_mut();
        match names.entry(id) {
            Some(entry) => Ok(entry.node.clone()),
            None => names.revive(&*self.home, id),
        }
    }

    /// The names, for looking, with this node among them.
    pub(crate) fn names_with(&self, id: NodeId) -> Result<RwLockReadGuard<'_, Names>, Errno> {
        let names = self.names();
        if names.entry(id).is_some() {
            return Ok(names);
        }
        drop(names);
        self.node(id)?;
        Ok(self.names())
    }

    /// Whether a change waits for room in the log.
    pub(crate) fn is_room_wanted(&self) -> bool {
        self.waiting_for_room.load(Ordering::Relaxed) > 0
    }

    fn own_room(&self) -> OwnRoom<'_> {
        OwnRoom { home: &*self.home, clock: &*self.clock, gate: &self.space }
    }

    /// Notes a name for the next front end.
    pub(crate) fn note(&self, names: &Names, entry: &RosterEntry) -> Result<(), Errno> {
        self.note_beside(names, entry, || None)
    }

    /// The same; a roster that is written anew for it says `also` besides what is known.
    pub(crate) fn note_beside(
        &self,
        names: &Names,
        entry: &RosterEntry,
        also: impl FnOnce() -> Option<RosterEntry>,
    ) -> Result<(), Errno> {
        let known = || names.roster().into_iter().chain(also()).collect();
        self.roster.note(self.own_room(), &*self.log, entry, known)
    }

    /// Notes what is about to be done for a request, for whoever is asked again.
    pub(crate) fn note_asked(&self, names: &Names, noted: Noted) -> Result<(), Errno> {
        let lane = names.requests.lane();
        self.note(names, &RosterEntry::Asked(lane, noted))?;
        names.requests.remember(lane, noted);
        Ok(())
    }

    /// Tells a replay which records are aside.
    pub(crate) fn passed_over(&self) -> PassedOver {
        self.cleaning.now().passed_over()
    }

    /// How far log and home are.
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.log.marks()
    }

    /// Where the log ends, as far as its device has it.
    #[must_use]
    pub fn log_end(&self) -> Lsn {
        self.log.marks().durable
    }
}

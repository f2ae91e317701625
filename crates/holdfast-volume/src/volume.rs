//! A directory volume: an ordinary directory as home, and a log before it.
//!
//! Promise: a change is acknowledged when its frame is stable, seen at once through the overlay,
//! and applied to the home only after the device has the frame. Frames enter the log in the order
//! in which their effects can be seen.
//! Never: starts a thread; somebody runs [`DirectoryVolume::run_drainer`],
//! [`DirectoryVolume::run_cleaner`] and [`DirectoryVolume::run_preparer`].

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use holdfast_io::{Clock, Files};
use holdfast_log::{AppendError, Appended, CommitError, Log, LogConfig, Lsn, OpenError, Recovery};
use holdfast_memory::{Region, RosterFault};

use crate::clean::{CleanError, Cleaned, Cleaner};
use crate::names::Names;
use crate::node::Node;
use crate::roster::{self, Entry as RosterEntry};
use crate::space::SpaceGate;
use crate::tree::{Errno, NodeId};
use crate::{replay, words};

/// What an acknowledgement means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Stable in the region: as good as its medium.
    Memory,
    /// On the device once a program's `fsync` returns.
    Disk,
}

/// How a volume works.
#[derive(Clone, Copy, Debug)]
pub struct VolumeConfig {
    /// What an acknowledgement means.
    pub class: Class,
    /// The log.
    pub log: LogConfig,
}

/// What opening a volume found.
#[derive(Debug)]
pub struct Attached {
    /// What the log found.
    pub recovery: Recovery,
    /// Records given back to memory because their process died.
    pub records_replayed: u64,
    /// Bytes applied to the home before service: what a process died in the middle of, or all
    /// that the log had because the machine stopped.
    pub bytes_applied: u64,
}

/// Why a volume cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum VolumeError {
    /// The log: see there.
    Log(OpenError),
    /// The log or the home failed while what was left was applied. Nothing is lost; mend the disk
    /// and open again.
    Clean(CleanError),
    /// The home cannot be read. Nothing is lost; mend the disk and open again.
    Home(Errno),
    /// The region's list of names is damaged, so the kernel's node numbers mean nothing any more.
    /// Nothing is lost: unmount, which makes the kernel forget them, and attach again.
    Roster(RosterFault),
    /// A frame holds what no version of Holdfast writes, at this LSN.
    Record(Lsn, crate::record::RecordFault),
}

impl std::fmt::Display for VolumeError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            VolumeError::Log(error) => write!(out, "the log cannot be opened: {error}"),
            VolumeError::Clean(error) => write!(out, "what the log has cannot be applied: {error}"),
            VolumeError::Home(errno) => {
                write!(out, "the home cannot be read: {}", io::Error::from_raw_os_error(errno.0))
            }
            VolumeError::Roster(fault) => {
                write!(out, "the region's names are damaged ({fault}); unmount and mount again")
            }
            VolumeError::Record(lsn, fault) => {
                write!(out, "the frame at LSN {} holds no known record: {fault:?}", lsn.0)
            }
        }
    }
}

impl std::error::Error for VolumeError {}

impl From<CleanError> for VolumeError {
    fn from(error: CleanError) -> VolumeError {
        VolumeError::Clean(error)
    }
}

/// Why an attempt to log a change ended without one.
pub(crate) enum Stop {
    /// The change is refused.
    Refused(Errno),
    /// The log has no room for this many bytes now.
    NoRoom(u64),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Stop {
        Stop::Refused(errno)
    }
}

/// An ordinary directory kept by a log. See the crate's documentation.
pub struct DirectoryVolume {
    pub(crate) home: Arc<dyn Files>,
    pub(crate) log: Log,
    pub(crate) region: Arc<Region>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) class: Class,
    names: RwLock<Names>,
    cleaner: Mutex<Cleaner>,
    pub(crate) space: SpaceGate,
}

impl DirectoryVolume {
    /// Opens the volume whose log `Log::create` made, and recovers it.
    ///
    /// If the region still holds the log's frames (the process died), memory is rebuilt from them
    /// and service can go on. Otherwise (the machine stopped) whatever the log has is applied to
    /// the home first.
    pub fn open(
        home: Arc<dyn Files>,
        log: Arc<dyn Files>,
        region: Arc<Region>,
        clock: Arc<dyn Clock>,
        config: VolumeConfig,
    ) -> Result<(DirectoryVolume, Attached), VolumeError> {
        let (log, recovery) =
            Log::open(log, region.clone(), clock.clone(), config.log).map_err(VolumeError::Log)?;
        let process_died = recovery.source == holdfast_log::Source::Ring;
        let known = match process_died {
            true => roster::known(&region).map_err(VolumeError::Roster)?,
            false => roster::Known::new(),
        };
        let next_free = replay::next_free(&log)?;
        let root = home.metadata("".as_ref()).map_err(|error| VolumeError::Home(error.into()))?;
        let names = Names::new(&root, known, next_free);
        let volume = DirectoryVolume {
            space: SpaceGate::new(),
            cleaner: Mutex::new(Cleaner::new(recovery.released)),
            names: RwLock::new(names),
            home,
            log,
            region,
            clock,
            class: config.class,
        };
        let mut attached = Attached { recovery, records_replayed: 0, bytes_applied: 0 };
        if process_died {
            attached.bytes_applied = crate::clean::finish_begun(&volume)?;
            volume.reread_root()?;
            attached.records_replayed = replay::replay(&volume)?;
            let roster = volume.names_mut().roster();
            roster::rewrite(&volume.region, roster).map_err(VolumeError::Home)?;
        } else {
            let tail = volume.log.marks().tail;
            volume.log.commit(tail).map_err(CleanError::Log)?;
            attached.bytes_applied = volume.apply_all()?;
            volume.reread_root()?;
            roster::rewrite(&volume.region, Vec::new()).map_err(VolumeError::Home)?;
        }
        Ok((volume, attached))
    }

    /// The root's attributes once the home is where the log says it is.
    fn reread_root(&self) -> Result<(), VolumeError> {
        let root = self.home.metadata("".as_ref());
        let root = root.map_err(|error| VolumeError::Home(error.into()))?;
        self.names_mut().reread_root(&root);
        Ok(())
    }

    /// Applies everything that is durable in the log.
    fn apply_all(&self) -> Result<u64, CleanError> {
        let mut bytes = 0;
        loop {
            let cleaned = self.clean_step()?;
            bytes += cleaned.bytes;
            if cleaned.is_idle() {
                return Ok(bytes);
            }
        }
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

    /// The log, for those who tell its state.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// What an acknowledgement of this volume means.
    pub fn class(&self) -> Class {
        self.class
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

    /// Repeats `attempt` until there is room in the log for it. `attempt` must hold no lock when
    /// it returns, because making room needs the locks.
    pub(crate) fn with_room<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, Stop>,
    ) -> Result<T, Errno> {
        loop {
            match attempt() {
                Ok(value) => return Ok(value),
                Err(Stop::Refused(errno)) => return Err(errno),
                Err(Stop::NoRoom(bytes)) => self.wait_for_room(bytes)?,
            }
        }
    }

    /// Waits until the drain and the cleaner have made room, and counts the wait.
    fn wait_for_room(&self, bytes: u64) -> Result<(), Errno> {
        let from_ns = self.clock.monotonic_ns();
        let waited = self.log.wait_for_room(bytes);
        let waited_ns = self.clock.monotonic_ns().saturating_sub(from_ns);
        words::count(&self.region, words::STALLS, 1);
        words::raise(&self.region, words::LONGEST_STALL_NS, waited_ns);
        waited.map_err(|_| Errno::IO)
    }

    /// Logs one frame. The caller holds the locks that order its effects.
    pub(crate) fn log_frame(
        &self,
        records: u16,
        payload: &[u8],
        data: &[u8],
    ) -> Result<Appended, Stop> {
        self.log.append(records, &[payload, data]).map_err(|error| match error {
            AppendError::Full => Stop::NoRoom((payload.len() + data.len()) as u64),
            AppendError::TooLarge { .. } => Stop::Refused(Errno::FBIG),
            _ => Stop::Refused(Errno::IO),
        })
    }

    /// Notes a name for the next front end.
    pub(crate) fn note(&self, names: &Names, entry: &RosterEntry) -> Result<(), Errno> {
        roster::note(&self.region, entry, || names.roster())
    }

    /// Moves what is in memory to the device, one step. Returns the bytes moved.
    pub fn drain_step(&self) -> Result<u64, CommitError> {
        Ok(self.log.drain()?.bytes)
    }

    /// Applies what the device has to the home, one window.
    pub fn clean_step(&self) -> Result<Cleaned, CleanError> {
        let mut cleaner = self.cleaner.lock().unwrap_or_else(PoisonError::into_inner);
        cleaner.step(self)
    }

    /// Drains until told to stop or the log is poisoned. Run it in a thread of its own.
    pub fn run_drainer(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if !self.log.wait_for_drain_work(IDLE_WAIT) {
                continue;
            }
            if self.log.drain().is_err() {
                std::thread::sleep(IDLE_WAIT);
            }
        }
    }

    /// Cleans until told to stop. A home that fails is tried again: the log still has everything.
    pub fn run_cleaner(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let idle = match self.clean_step() {
                Ok(cleaned) => cleaned.is_idle(),
                Err(error) => {
                    words::set(&self.region, words::HOME_ERRNO, error.errno());
                    true
                }
            };
            if idle {
                std::thread::sleep(CLEAN_PAUSE);
            }
        }
    }

    /// Prepares segments and writes idle watermarks until told to stop.
    pub fn run_preparer(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if !matches!(self.log.prepare(), Ok(true)) {
                std::thread::sleep(IDLE_WAIT);
            }
        }
    }

    /// Brings everything home: drains, applies, removes what only a mounted volume needs, and
    /// leaves the home complete and ordinary. No front end may use the volume any more.
    pub fn detach(&self) -> Result<(), CleanError> {
        loop {
            self.log.commit(self.log.marks().tail).map_err(CleanError::Log)?;
            if self.clean_step()?.is_idle() && self.log.marks().tail == self.log.marks().durable {
                break;
            }
        }
        crate::clean::remove_orphans(&*self.home)?;
        self.log.close().map_err(CleanError::Log)
    }
}

/// How long an idle thread sleeps before it looks whether it should stop.
const IDLE_WAIT: Duration = Duration::from_millis(20);
/// How long the cleaner lets changes gather, so that it applies them once.
const CLEAN_PAUSE: Duration = Duration::from_millis(50);

//! A directory volume: an ordinary directory as home, and a log before it.
//!
//! Promise: a change is acknowledged when its frame is stable, seen at once through the overlay,
//! and applied to the home only after the device has the frame. Frames enter the log in the order
//! in which their effects can be seen.
//! Never: starts a thread, or knows where the log stands; somebody runs
//! [`DirectoryVolume::run_cleaner`], and whoever has the log drains it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::time::Duration;

use holdfast_io::{Clock, Files};
use holdfast_log::{AppendError, Appended, CommitLog, Lsn, Marks};

use crate::clean::Cleaned;
use crate::clean::aside::{Aside, PassedOver};
use crate::clean::cleaner::Cleaner;
use crate::clean::error::CleanError;
use crate::clean::forecast::Forecast;
use crate::clean::frames::{decode_names, syncs_max, tells_inodes};
use crate::error::{Stop, VolumeError};
use crate::frame::Frame;
use crate::kept::KeptFiles;
use crate::names::Names;
use crate::node::Node;
use crate::requests::Noted;
use crate::room_unit::RoomUnit;
use crate::roster::{Entry as RosterEntry, Roster};
use crate::settling::Settling;
use crate::shares::{Shares, Wait};
use crate::space::{Charge, Cost, OwnRoom, SpaceGate, shortage_in};
use crate::tried::Tried;
use crate::writing::WritingFiles;
use crate::xattr::Gate;
use crate::{own, replay, touched, words};
use holdfast_io::tree::{Errno, NodeId, Waits, asker};

/// Work that may wait for the home and is no bytes of the log, where it is not known how long the
/// ring is. Otherwise as much as the ring has.
const WORK_BYTES_MAX: u64 = 64 << 20;

/// One part in so many of the ring is kept for what may give the home room.
const KEPT_FRACTION: u64 = 16;

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
    names: RwLock<Names>,
    /// Held while it is counted and noted how often a node is remembered; taken after `names`.
    counting: Mutex<()>,
    cleaner: Mutex<Cleaner>,
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
    /// Opens the volume whose changes `log` has, and recovers it. Nobody else reads that log.
    ///
    /// If a volume has been open on this memory before (its process died), memory is rebuilt from
    /// the frames in the ring and service can go on. Otherwise (the machine stopped) whatever the
    /// log has is applied to the home first.
    ///
    /// # Errors
    /// See [`VolumeError`]; opening may be tried again.
    pub fn open(
        home: Arc<dyn Files>,
        log: Arc<dyn CommitLog>,
        clock: Arc<dyn Clock>,
        class: Class,
    ) -> Result<(DirectoryVolume, Attached), VolumeError> {
        DirectoryVolume::open_beside(home, log, clock, class, None)
    }

    /// [`DirectoryVolume::open`], with the directory of the log at hand: what the home can never
    /// take is put aside there, once somebody orders it.
    ///
    /// # Errors
    /// See [`VolumeError`]; opening may be tried again.
    pub fn open_beside(
        home: Arc<dyn Files>,
        log: Arc<dyn CommitLog>,
        clock: Arc<dyn Clock>,
        class: Class,
        log_files: Option<Arc<dyn Files>>,
    ) -> Result<(DirectoryVolume, Attached), VolumeError> {
        let aside = Aside::load(log_files, log.marks().released).map_err(CleanError::Aside)?;
        let process_died = log.word(words::OPENED).map_err(CleanError::Word)? != 0;
        let roster = Roster::default();
        let (known, requests) = match process_died {
            true => roster.known(&*home, &*log)?,
            false => Default::default(),
        };
        let (next_free, told) = replay::look_ahead(&*log)?;
        let root = home.metadata("".as_ref()).map_err(|error| VolumeError::Home(error.into()))?;
        let space = home.space().map_err(|error| VolumeError::Home(error.into()))?;
        let shares = Arc::new(Shares::default());
        let volume = DirectoryVolume {
            name_bytes_max: space.name_bytes_max as usize,
            space: SpaceGate::new(RoomUnit::of(&space)),
            xattrs: Gate::default(),
            can_exchange: OnceLock::new(),
            tried: Tried::default(),
            roster,
            kept_files: KeptFiles::default(),
            writing: WritingFiles::new(shares.clone()),
            shares,
            forecast: Forecast::new(tells_inodes(&*home), syncs_max(&*home)),
            settling: Settling::default(),
            waiting_for_room: AtomicU64::new(0),
            lets_go: AtomicBool::new(false),
            cleaner: Mutex::new(Cleaner::new(log.marks().released, aside)),
            names: RwLock::new(Names::new(&root, known, next_free)),
            counting: Mutex::new(()),
            home,
            log,
            clock,
            class,
        };
        volume.names_mut().requests = requests;
        volume.names_mut().mark_home(&*volume.home, &root);
        volume.names_mut().tell_homes(told);
        let tells = volume.log.word(words::INODES_TOLD).map_err(CleanError::Word)? != 0;
        volume.names_mut().rely_on_roster(process_died && tells);
        // A home that cannot tell now is asked again where it matters.
        let _ = volume.space.limits(&*volume.home);
        let attached = match process_died {
            true => volume.take_over()?,
            false => volume.begin()?,
        };
        volume.note_touched()?;
        Ok((volume, attached))
    }

    /// Has the next open begin as after a restart of the machine. For a volume whose node numbers
    /// no kernel knows any more; its notes of names are not looked at then.
    ///
    /// # Errors
    /// [`VolumeError::Clean`]: the log does not take the word.
    pub fn forget_kernel(log: &dyn CommitLog) -> Result<(), VolumeError> {
        Ok(log.set_word(words::OPENED, 0).map_err(CleanError::Word)?)
    }

    /// Goes on where another process died: the kernel may know its node numbers.
    fn take_over(&self) -> Result<Attached, VolumeError> {
        let bytes_applied = crate::clean::finish_begun(self)?;
        self.reread_root()?;
        let records_replayed = replay::replay(self)?;
        self.names_mut().complete();
        self.open_again_for_writing();
        self.names_mut().find_unreachable(&*self.home);
        let roster = self.names_mut().roster();
        self.roster.take_over(self.own_room(), &*self.log, roster)?;
        Ok(Attached { records_replayed, bytes_applied })
    }

    /// Begins on a home of which nothing is known but that it has everything below the released
    /// mark. What is above may be there in part. One that dies on the way is begun again.
    fn begin(&self) -> Result<Attached, VolumeError> {
        let unfitness = crate::fitness::unfitness(&*self.home);
        if let Some(why) = unfitness.map_err(|error| VolumeError::Home(error.into()))? {
            return Err(VolumeError::Unfit(why));
        }
        self.log.commit(self.log.marks().tail).map_err(CleanError::Log)?;
        let bytes_applied = self.apply_all()?;
        self.names_mut().end_told();
        self.names_mut().complete();
        self.cleaner().close_aside()?;
        // No kernel knows the files without a name that programs had open.
        crate::clean::remove_orphans(&*self.home, None)?;
        self.reread_root()?;
        let nothing = self.roster.rewrite(self.own_room(), &*self.log, Vec::new());
        nothing.map_err(VolumeError::Home)?;
        self.log.set_word(words::INODES_TOLD, 1).map_err(CleanError::Word)?;
        self.log.set_word(words::OPENED, 1).map_err(CleanError::Word)?;
        Ok(Attached { records_replayed: 0, bytes_applied })
    }

    /// The root's attributes once the home is where the log says it is.
    fn reread_root(&self) -> Result<(), VolumeError> {
        let root = self.home.metadata("".as_ref());
        let mut root = root.map_err(|error| VolumeError::Home(error.into()))?;
        // Nobody sees the volume's own directory. One link means that they are not counted.
        let own = self.home.metadata(own::NAME.as_ref());
        root.links -= u32::from(root.links > 1 && own.is_ok());
        self.names_mut().reread_root(&root);
        Ok(())
    }

    /// The home has just been touched.
    pub(crate) fn note_touched(&self) -> Result<(), CleanError> {
        touched::note(&*self.log, &*self.clock)
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

    /// Whoever asks from now on, or waits already, is told an error where the log has no room.
    /// Nobody hears it, and giving the volume back must not wait for a home that takes nothing.
    pub fn let_go(&self) {
        self.lets_go.store(true, Ordering::Relaxed);
    }

    /// Repeats `attempt` until there is room in the log for it. `attempt` must hold no lock when
    /// it returns, because making room needs the locks.
    pub(crate) fn with_room<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, Stop>,
    ) -> Result<T, Errno> {
        let waits = asker().waits;
        let asks_home = waits == Waits::ForTheHome;
        let (mut settled, mut stall) = (asks_home && self.has_settled(), None);
        if waits == Waits::Behind {
            return Err(Errno::LATER);
        }
        loop {
            let attempted = self.attempt_in_turn(&mut attempt);
            if asks_home {
                self.settles(!settled && matches!(attempted, Err(Stop::NoSpace)));
            }
            let stop = match attempted {
                Ok(value) => return Ok(value),
                Err(stop) => stop,
            };
            match stop {
                Stop::Refused(errno) => return Err(errno),
                Stop::NoRoom(_) | Stop::NoTurn | Stop::NoWork
                    if self.lets_go.load(Ordering::Relaxed) =>
                {
                    return Err(Errno::IO);
                }
                Stop::NoSpace if settled => return Err(Errno::NOSPC),
                _ if waits != Waits::InPlace => return Err(Errno::LATER),
                Stop::NoSpace => settled = self.settle(),
                Stop::NoRoom(bytes) => {
                    stall.get_or_insert_with(|| Stall::begin(self)).wait_for_room(bytes)?;
                }
                Stop::NoTurn | Stop::NoWork => {
                    stall.get_or_insert_with(|| Stall::begin(self)).wait_for_turn();
                }
                Stop::NoFiles => self.let_files_go(),
            }
        }
    }

    /// One attempt. Notes whether the user waits now.
    fn attempt_in_turn<T>(&self, attempt: &mut impl FnMut() -> Result<T, Stop>) -> Result<T, Stop> {
        let Some(user) = asker().user else { return attempt() };
        let attempted = attempt().map_err(|stop| self.refused_for_shortage(stop));
        let kind = match attempted {
            Ok(_) | Err(Stop::Refused(_)) => {
                if let Some(since_ns) = self.shares.waits_no_more(user) {
                    let waited_ns = self.clock.monotonic_ns().saturating_sub(since_ns);
                    self.log.raise_word(words::LONGEST_STALL_NS, waited_ns);
                }
                return attempted;
            }
            Err(Stop::NoRoom(bytes)) => Wait::Room(bytes),
            Err(Stop::NoTurn) => Wait::Turn,
            Err(_) => Wait::Home,
        };
        self.shares.waits(user, kind, self.clock.monotonic_ns());
        attempted
    }

    /// What would wait for what the home has no room for is refused instead: nothing that this
    /// process does ends such a wait, and whoever can end it may be the one who would wait.
    fn refused_for_shortage(&self, stop: Stop) -> Stop {
        match stop {
            Stop::NoRoom(_) | Stop::NoTurn | Stop::NoWork | Stop::NoFiles => {
                self.space.shortage().map_or(stop, Stop::Refused)
            }
            Stop::Refused(_) | Stop::NoSpace => stop,
        }
    }

    /// Bytes of the ring that nobody has, if it is known how many it has.
    fn free_bytes(&self) -> Option<u64> {
        let marks = self.log.marks();
        let ring_bytes = self.log.ring_bytes()?;
        Some(ring_bytes.saturating_sub(marks.tail.since(marks.released)))
    }

    /// Waits, for whoever was told [`Errno::LATER`], until asking again may be of use.
    pub(crate) fn wait_until_later(&self, patience: Duration) {
        let stall = Stall::begin(self);
        match self.shares.wanted_bytes() {
            // What a drain frees is told by the log alone, and what a cleaner frees may be enough
            // for somebody else.
            Some(bytes) => drop(stall.wait_so_long(bytes, patience.min(CLEAN_LOOK))),
            None => {
                self.log.add_to_word(words::STALLS, 1);
                // Only what the device has can come home. If the log fails, whoever asks again is
                // told.
                let _ = self.log.commit(self.log.marks().tail);
                self.shares.wait(patience);
            }
        }
    }

    /// Brings home what waits, so that the home can tell how much room is left. Always true: a log
    /// or a home that fails cannot say that there is any.
    fn settle(&self) -> bool {
        let has_to_wait = self.remove_unreachable();
        self.bring_home();
        // What found no room in the log before gives some back at home, too.
        if has_to_wait {
            self.remove_unreachable();
            self.bring_home();
        }
        true
    }

    fn bring_home(&self) {
        let upto = self.log.marks().tail;
        if self.log.commit(upto).is_ok() {
            while self.log.marks().released < upto
                && self.clean_step().is_ok_and(|cleaned| !cleaned.is_idle())
            {}
        }
    }

    /// Brings home what waits, so that its files can be closed. A home that fails is tried again.
    fn let_files_go(&self) {
        let upto = self.log.marks().tail;
        self.settle();
        if self.log.marks().released < upto {
            std::thread::sleep(CLEAN_LOOK);
        }
    }

    /// Lets a change pass that costs the home so much, or says why not.
    pub(crate) fn admit(&self, cost: Cost) -> Result<Charge<'_>, Stop> {
        self.space.admit(&*self.home, &*self.clock, cost).map_err(|stop| match stop {
            // What waits may give room back of which the home does not know yet.
            Stop::Refused(Errno::NOSPC) if self.has_unapplied() => Stop::NoSpace,
            stop => stop,
        })
    }

    fn has_unapplied(&self) -> bool {
        let marks = self.log.marks();
        marks.released < marks.tail
    }

    /// Whether a change waits for room in the log.
    pub(crate) fn is_room_wanted(&self) -> bool {
        self.waiting_for_room.load(Ordering::Relaxed) > 0
    }

    /// Logs one frame without data. The caller holds the locks that order its effects.
    pub(crate) fn log_frame(&self, records: u16, payload: &[u8]) -> Result<Appended, Stop> {
        self.log_names(records, payload, 0, || self.has_turn(payload, &[]))
    }

    /// Logs one frame that may change names, which is more for the home than it is for the log
    /// where they do not go with what was changed before.
    fn log_names(
        &self,
        records: u16,
        payload: &[u8],
        unlogged_bytes: u64,
        has_turn: impl FnOnce() -> bool,
    ) -> Result<Appended, Stop> {
        let whole = decode_names(payload);
        // What may give the home room waits for no work that wants room.
        let is_short = self.space.shortage().is_some();
        let foreseen_bytes = if is_short { 0 } else { self.forecast.work_bytes(&whole) };
        self.admit_work(foreseen_bytes.max(unlogged_bytes))?;
        if !has_turn() {
            return Err(Stop::NoTurn);
        }
        let appended = self.append(records, payload, &[])?;
        let work_bytes = self.forecast.take(appended.lsn, &whole);
        self.placed(&appended, work_bytes.max(unlogged_bytes));
        Ok(appended)
    }

    /// Whether whom this thread works for may leave so much work to the home that is no bytes of
    /// the log.
    pub(crate) fn admit_work(&self, unlogged_bytes: u64) -> Result<(), Stop> {
        let work_bytes_max = self.log.ring_bytes().unwrap_or(WORK_BYTES_MAX);
        let may = |user| self.shares.may_leave_work(user, unlogged_bytes, work_bytes_max);
        if asker().user.is_none_or(may) { Ok(()) } else { Err(Stop::NoWork) }
    }

    /// The same for a frame about what a file holds, which may be more for the home than it is for
    /// the log.
    pub(crate) fn log_contents(&self, frame: &Frame<'_>, data: &[u8]) -> Result<Appended, Stop> {
        let unlogged_bytes = frame.unlogged_bytes;
        self.admit_work(unlogged_bytes)?;
        if !self.has_turn(&frame.payload, data) {
            return Err(Stop::NoTurn);
        }
        let appended = self.append(frame.records, &frame.payload, data)?;
        self.placed(&appended, unlogged_bytes);
        self.forecast.know(appended.lsn, frame.spot.node, frame.spot.path);
        Ok(appended)
    }

    /// The same for a frame that moves names. While somebody moves one to another directory the
    /// kernel lets nobody else do that in the whole mount: soon it is anybody's turn.
    pub(crate) fn log_move(
        &self,
        is_within: bool,
        records: u16,
        payload: &[u8],
        unlogged_bytes: u64,
    ) -> Result<Appended, Stop> {
        let goes = || self.shares.goes_out_of_turn(self.clock.monotonic_ns());
        let has_turn = || self.has_turn(payload, &[]) || !is_within && goes();
        self.log_names(records, payload, unlogged_bytes, has_turn)
    }

    /// Whether it is the turn of whom this thread works for. A part of the ring is nobody's turn:
    /// while the home has no room for what waits, what brings it no data goes there before all
    /// turns, because it may give room back.
    fn has_turn(&self, payload: &[u8], data: &[u8]) -> bool {
        let Some(user) = asker().user else { return true };
        if data.is_empty() && self.space.shortage().is_some() {
            return true;
        }
        let bytes = (payload.len() + data.len()) as u64;
        let kept_bytes = self.log.ring_bytes().unwrap_or(0) / KEPT_FRACTION;
        let free_bytes = self.free_bytes();
        free_bytes.is_none_or(|free| free >= bytes + kept_bytes)
            && self.shares.may_append(user, bytes, free_bytes)
    }

    fn append(&self, records: u16, payload: &[u8], data: &[u8]) -> Result<Appended, Stop> {
        let bytes = (payload.len() + data.len()) as u64;
        self.log.append(records, &[payload, data]).map_err(|error| match error {
            AppendError::Full => Stop::NoRoom(bytes),
            AppendError::TooLarge { .. } => Stop::Refused(Errno::FBIG),
            _ => Stop::Refused(Errno::IO),
        })
    }

    /// Counts what was logged for whom this thread works for.
    fn placed(&self, appended: &Appended, unlogged_bytes: u64) {
        if let Some(user) = asker().user {
            let ring_bytes = appended.end.since(appended.lsn);
            self.shares.placed(user, appended.lsn, ring_bytes, unlogged_bytes);
        }
    }

    fn own_room(&self) -> OwnRoom<'_> {
        OwnRoom { home: &*self.home, clock: &*self.clock, gate: &self.space }
    }

    /// Notes a name for the next front end.
    pub(crate) fn note(&self, names: &Names, entry: &RosterEntry) -> Result<(), Errno> {
        self.roster.note(self.own_room(), &*self.log, entry, || names.roster())
    }

    /// Notes what is about to be done for a request, for whoever is asked again.
    pub(crate) fn note_asked(&self, names: &Names, noted: Noted) -> Result<(), Errno> {
        let lane = names.requests.lane();
        self.note(names, &RosterEntry::Asked(lane, noted))?;
        names.requests.remember(lane, noted);
        Ok(())
    }

    /// Applies what the device has to the home, one window. What nobody can reach any more is
    /// removed first, as far as the log has room.
    pub fn clean_step(&self) -> Result<Cleaned, CleanError> {
        self.remove_unreachable();
        let stepped = self.cleaner().step(self);
        if stepped.is_err() {
            self.settling.cleaner_failed();
        }
        self.space.tell_shortage(shortage_in(&stepped));
        stepped
    }

    /// Tells a replay which records are aside.
    pub(crate) fn passed_over(&self) -> PassedOver {
        self.cleaner().passed_over()
    }

    fn cleaner(&self) -> MutexGuard<'_, Cleaner> {
        self.cleaner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cleans until told to stop. A home that fails is tried again: the log still has everything.
    pub fn run_cleaner(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            match self.clean_step() {
                // What ends a window says nothing of how much is waiting behind it.
                Ok(cleaned) if cleaned.more => continue,
                Ok(_) => {}
                // If the log is what failed, or does not hear of it, it says so itself.
                Err(error) => drop(self.log.set_word(words::HOME_ERRNO, error.errno())),
            }
            self.let_changes_gather(stop);
        }
    }

    /// Lets several changes become one window, unless somebody waits for the room they take.
    fn let_changes_gather(&self, stop: &AtomicBool) {
        for _ in 0..CLEAN_LOOKS {
            std::thread::sleep(CLEAN_LOOK);
            if stop.load(Ordering::Relaxed) || self.is_room_wanted() {
                return;
            }
        }
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

    /// Brings everything home: drains, applies, removes what only a mounted volume needs, and
    /// leaves the home complete and ordinary. No front end may use the volume any more.
    ///
    /// # Errors
    /// See [`CleanError`]; it may be tried again.
    pub fn detach(&self) -> Result<(), CleanError> {
        loop {
            self.log.commit(self.log.marks().tail).map_err(CleanError::Log)?;
            if self.clean_step()?.is_idle() && self.log.marks().tail == self.log.marks().durable {
                break;
            }
        }
        self.cleaner().close_aside()?;
        let root_ns = self.names().root_time();
        crate::clean::remove_orphans(&*self.home, root_ns)?;
        // Nobody goes on from here: the next one to open this memory begins on a complete home.
        self.log.set_word(words::OPENED, 0).map_err(CleanError::Word)
    }
}

/// How long a change waits for room before the home is asked again whether it takes it at all.
const ROOM_PATIENCE: Duration = Duration::from_secs(1);

/// A change that waits for room in the log. It is counted each time that it begins to wait, so that
/// whoever looks from outside sees that it does.
struct Stall<'v> {
    volume: &'v DirectoryVolume,
    from_ns: u64,
}

impl<'v> Stall<'v> {
    fn begin(volume: &'v DirectoryVolume) -> Stall<'v> {
        volume.waiting_for_room.fetch_add(1, Ordering::Relaxed);
        Stall { volume, from_ns: volume.clock.monotonic_ns() }
    }

    /// Returns when the drain and the cleaner may have made room. It is no use to wait if the home
    /// refuses the change by now, so the caller asks again each time.
    fn wait_for_room(&self, bytes: u64) -> Result<(), Errno> {
        self.wait_so_long(bytes, ROOM_PATIENCE)
    }

    /// Returns when somebody may have given back what others are to have, or they have it.
    fn wait_for_turn(&self) {
        self.volume.log.add_to_word(words::STALLS, 1);
        self.volume.shares.wait(CLEAN_LOOK);
    }

    fn wait_so_long(&self, bytes: u64, patience: Duration) -> Result<(), Errno> {
        self.volume.log.add_to_word(words::STALLS, 1);
        match self.volume.log.wait_for_room(bytes, patience) {
            Ok(()) | Err(AppendError::Full) => Ok(()),
            Err(_) => Err(Errno::IO),
        }
    }
}

impl Drop for Stall<'_> {
    fn drop(&mut self) {
        let Stall { volume, from_ns } = self;
        volume.waiting_for_room.fetch_sub(1, Ordering::Relaxed);
        let waited_ns = volume.clock.monotonic_ns().saturating_sub(*from_ns);
        volume.log.raise_word(words::LONGEST_STALL_NS, waited_ns);
    }
}

/// How often the cleaner looks whether it should go on before the changes have gathered.
const CLEAN_LOOK: Duration = Duration::from_millis(5);
/// Looks between two windows. A window costs several flushes, whatever is in it, and the drain may
/// wait for the same disk.
const CLEAN_LOOKS: u32 = 40;

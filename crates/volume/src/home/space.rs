//! Whether the home has room for what is acknowledged.
//!
//! A change is acknowledged long before it reaches the home, so whatever the home could say against
//! it must be asked at once: later nobody listens. The gate keeps the last answer of the home, less
//! what was admitted since, and what is admitted and not at home yet, each until its frame is.
//!
//! Promise: what is admitted fits the home together with everything admitted before it and not
//! applied yet. `ENOSPC` is said only while nothing waits, so it is the home's own answer; `EROFS`
//! as soon as the home says so; `EDQUOT` for as long as what waits cannot come home for a quota.
//! Whoever would wait for what waits so, or for want of room, is told that error instead.
//! Never: refuses while plenty is free.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use holdfast_io::tree::Errno;
use holdfast_io::{Allocation, Clock, Files, Limits};
use holdfast_log::Lsn;

use crate::clean::error::CleanError;
use crate::error::Stop;
use crate::home::room_unit::RoomUnit;
use crate::node::Body;
use crate::overlay::allocated::Allocated;

/// How long an answer of the home counts while much is free.
const ANSWER_NS: u64 = 100_000_000;
/// Kept free for what is never refused for the want of it: removals, attributes, the home's needs.
const MARGIN_BYTES: u64 = 4 << 20;
/// The directory of orphans is made when it is needed.
const MARGIN_INODES: u64 = 1;
/// What a name may take: a directory's block is split in two, and so is the one that leads to it.
const NAME_BLOCKS: u64 = 3;
/// Log in which the costs of several changes are kept as one.
const TOGETHER_BYTES: u64 = 1 << 20;

/// What a change may take from the home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

impl Cost {
    /// Nothing that is counted.
    pub(crate) const NONE: Cost = Cost { bytes: 0, inodes: 0 };
    /// A new name of a node that is there.
    pub(crate) fn of_name(unit: RoomUnit) -> Cost {
        Cost { bytes: NAME_BLOCKS * unit.bytes(), inodes: 0 }
    }

    /// A new node: its name, and a block for what a directory or a link holds.
    pub(crate) fn of_node(unit: RoomUnit) -> Cost {
        Cost { bytes: (NAME_BLOCKS + 2) * unit.bytes(), inodes: 1 }
    }

    /// Blocks of a file that have no room yet, and one that tells where they are.
    pub(crate) fn of_blocks(bytes: u64, unit: RoomUnit) -> Cost {
        let more = if bytes > 0 { unit.bytes() } else { 0 };
        Cost { bytes: bytes.saturating_add(more), inodes: 0 }
    }

    /// Two names that change places. Which inode has the first is written down in a link meanwhile.
    pub(crate) fn of_exchange(unit: RoomUnit) -> Cost {
        Cost::of_node(unit).plus(Cost::of_name(unit)).plus(Cost::of_name(unit))
    }

    /// What is tried out on a node of the volume's own before it is done.
    pub(crate) fn tried_first(self, unit: RoomUnit) -> Cost {
        self.plus(self).plus(Cost::of_node(unit))
    }

    pub(crate) fn plus(self, other: Cost) -> Cost {
        let bytes = self.bytes.saturating_add(other.bytes);
        Cost { bytes, inodes: self.inodes.saturating_add(other.inodes) }
    }

    /// What is left, if it is enough.
    fn minus(self, other: Cost) -> Option<Cost> {
        let bytes = self.bytes.checked_sub(other.bytes)?;
        Some(Cost { bytes, inodes: self.inodes.checked_sub(other.inodes)? })
    }
}

/// Costs of frames between two places of the log.
struct Waiting {
    first: Lsn,
    last: Lsn,
    cost: Cost,
}

/// The gate.
pub(crate) struct SpaceGate {
    /// What room is counted in.
    pub(crate) unit: RoomUnit,
    books: Mutex<Books>,
    limits: OnceLock<Limits>,
    allocation: OnceLock<Allocation>,
    writes_in_place: OnceLock<bool>,
}

#[derive(Default)]
struct Books {
    /// What may still be admitted, by the last answer.
    room: Cost,
    read_only: bool,
    /// What the home says for want of room against what waits.
    shortage: Option<Errno>,
    asked_at_ns: Option<u64>,
    /// Admitted, and not in the log yet.
    unplaced: Cost,
    /// In the log, and not at home yet, oldest first.
    waiting: VecDeque<Waiting>,
    waiting_sum: Cost,
}

/// A change that was admitted. Unless it comes to be [`Charge::placed`], it is taken back.
pub(crate) struct Charge<'g> {
    gate: &'g SpaceGate,
    cost: Cost,
    placed: bool,
}

impl Charge<'_> {
    /// The change stands in the log at `lsn`.
    pub(crate) fn placed(mut self, lsn: Lsn) {
        self.placed = true;
        self.gate.books().place(self.cost, lsn);
    }

    /// The home has it, without the log.
    fn spent(mut self) {
        self.placed = true;
        self.gate.books().spend(self.cost);
    }
}

/// Room on the home for what a volume keeps there for itself: no byte that was admitted for what is
/// acknowledged and not at home yet.
#[derive(Clone, Copy)]
pub(crate) struct OwnRoom<'v> {
    pub(crate) home: &'v dyn Files,
    pub(crate) clock: &'v dyn Clock,
    pub(crate) gate: &'v SpaceGate,
}

impl OwnRoom<'_> {
    /// Does what costs so much; `StorageFull` if it may not.
    pub(crate) fn spend<T>(
        &self,
        cost: Cost,
        done: impl FnOnce(&dyn Files) -> io::Result<T>,
    ) -> io::Result<T> {
        let charge = self.gate.admit(self.home, self.clock, cost);
        let charge = charge.map_err(|stop| match stop {
            Stop::Refused(Errno::ROFS) => io::Error::from_raw_os_error(Errno::ROFS.0),
            _ => io::ErrorKind::StorageFull.into(),
        })?;
        let done = done(self.home);
        // What failed may have taken a part.
        charge.spent();
        done
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        if !self.placed {
            self.gate.books().take_back(self.cost);
        }
    }
}

/// What the home says against a window if room is all that it lacks.
pub(crate) fn shortage_in<T>(stepped: &Result<T, CleanError>) -> Option<Errno> {
    let Err(CleanError::Home { error, .. }) = stepped else { return None };
    let errno = Errno(error.raw_os_error()?);
    matches!(errno, Errno::NOSPC | Errno::DQUOT).then_some(errno)
}

impl SpaceGate {
    pub(crate) fn new(unit: RoomUnit) -> SpaceGate {
        SpaceGate {
            unit,
            books: Mutex::new(Books::default()),
            limits: OnceLock::new(),
            allocation: OnceLock::new(),
            writes_in_place: OnceLock::new(),
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a change pass that costs so much, or says why not. [`Stop::NoSpace`] while something
    /// waits that the home may have counted twice: who waits for that is told the truth.
    pub(crate) fn admit(
        &self,
        home: &dyn Files,
        clock: &dyn Clock,
        cost: Cost,
    ) -> Result<Charge<'_>, Stop> {
        let mut books = self.books();
        let now_ns = clock.monotonic_ns();
        let is_old = |at_ns: u64| now_ns.saturating_sub(at_ns) >= ANSWER_NS;
        if books.asked_at_ns.is_none_or(is_old) || books.room.minus(cost).is_none() {
            books.ask(home, now_ns)?;
        }
        books.take(cost)?;
        Ok(Charge { gate: self, cost, placed: false })
    }

    /// A change was admitted by an earlier process, and stands in the log at `lsn`.
    pub(crate) fn replayed(&self, cost: Cost, lsn: Lsn) {
        let mut books = self.books();
        books.unplaced = books.unplaced.plus(cost);
        books.place(cost, lsn);
    }

    /// The home has everything below `upto`, and says so when it is asked for its space.
    pub(crate) fn came_home(&self, upto: Lsn) {
        self.books().came_home(upto);
    }

    /// What waits cannot come home for want of room, `ENOSPC`, or for a quota, `EDQUOT`; or it can.
    /// No file system says before a change whether a quota will refuse it.
    pub(crate) fn tell_shortage(&self, shortage: Option<Errno>) {
        self.books().shortage = shortage;
    }

    /// What was told so last.
    pub(crate) fn shortage(&self) -> Option<Errno> {
        self.books().shortage
    }

    /// What is acknowledged and takes no room in the home yet.
    pub(crate) fn waiting(&self) -> Cost {
        let books = self.books();
        books.waiting_sum.plus(books.unplaced)
    }

    /// What bytes for a range of a file may take: the room of blocks that have none, or of all
    /// where the home writes them elsewhere before it lets go of what they have.
    pub(crate) fn cost_of_bytes(
        &self,
        home: &dyn Files,
        body: &Body,
        offset: u64,
        bytes: u64,
    ) -> Cost {
        let bytes = match self.writes_in_place(home) {
            true => body.unallocated_bytes(offset, bytes),
            false => self.unit.blocks_bytes(offset, bytes),
        };
        Cost::of_blocks(bytes, self.unit)
    }

    /// What a hole may take: something only where the home makes none, and zeros are written over
    /// data that may be in want of room for it.
    pub(crate) fn cost_of_hole(
        &self,
        home: &dyn Files,
        body: &Body,
        offset: u64,
        bytes: u64,
    ) -> Result<Cost, Errno> {
        let is_vague = body.allocated.as_ref().is_some_and(Allocated::is_vague);
        let is_free = self.allocation(home)?.gives_back || self.writes_in_place(home) && !is_vague;
        let bytes = if is_free { 0 } else { self.unit.blocks_bytes(offset, bytes) };
        Ok(Cost::of_blocks(bytes, self.unit))
    }

    fn writes_in_place(&self, home: &dyn Files) -> bool {
        *self.writes_in_place.get_or_init(|| home.writes_in_place())
    }

    /// The range was punched: it loses its room if the home takes it. Where that cannot be asked
    /// now, the room is counted once too often.
    pub(crate) fn punched(&self, home: &dyn Files, body: &mut Body, offset: u64, end: u64) {
        if self.allocation(home).is_ok_and(|it| !it.gives_back) {
            return;
        }
        body.punch(offset, end);
    }

    /// What the home does with room; asked once.
    pub(crate) fn allocation(&self, home: &dyn Files) -> Result<Allocation, Errno> {
        match self.allocation.get() {
            Some(allocation) => Ok(*allocation),
            None => {
                let allocation = home.allocation()?;
                Ok(*self.allocation.get_or_init(|| allocation))
            }
        }
    }

    /// What a further name of a file costs. A home that cannot be asked may take an inode for it.
    pub(crate) fn cost_of_link(&self, home: &dyn Files) -> Cost {
        let limits = self.limits(home).unwrap_or(Limits::UNKNOWN);
        Cost { inodes: u64::from(limits.links_take_inodes), ..Cost::of_name(self.unit) }
    }

    /// What extended attributes cost that are given to one node: each takes blocks of its own, and
    /// inodes where the home has some for values. Several may have to be tried out first, as the
    /// home may take them in one order alone.
    pub(crate) fn cost_of_xattrs(&self, home: &dyn Files, given: &[(&[u8], &[u8])]) -> Cost {
        let cost = given.iter().map(|(name, value)| self.cost_of_xattr(home, name, value));
        let cost = cost.fold(Cost::NONE, Cost::plus);
        if given.len() > 1 { cost.tried_first(self.unit) } else { cost }
    }

    /// A home that cannot be asked may take as many inodes as any that is known.
    pub(crate) fn cost_of_xattr(&self, home: &dyn Files, name: &[u8], value: &[u8]) -> Cost {
        let limits = self.limits(home).unwrap_or(Limits::UNKNOWN);
        let bytes = Cost::of_blocks(self.unit.bytes() + value.len() as u64, self.unit);
        Cost { inodes: limits.xattr_inodes(name, value), ..bytes }
    }

    /// What a file of the home can be at most; asked once.
    pub(crate) fn limits(&self, home: &dyn Files) -> Result<Limits, Errno> {
        match self.limits.get() {
            Some(limits) => Ok(*limits),
            None => {
                let limits = crate::names::links::limits_of(home)?;
                Ok(*self.limits.get_or_init(|| limits))
            }
        }
    }
}

impl Books {
    /// Asks the home. What waits is looked at before, so that what comes home meanwhile is counted
    /// twice rather than not at all.
    fn ask(&mut self, home: &dyn Files, now_ns: u64) -> Result<(), Errno> {
        let taken = self.waiting_sum.plus(self.unplaced);
        let taken = taken.plus(Cost { bytes: MARGIN_BYTES, inodes: MARGIN_INODES });
        let space = home.space()?;
        // A file system that makes inodes as it needs them says that it has none.
        let inodes = if space.total_inodes == 0 { u64::MAX } else { space.free_inodes };
        self.room = Cost {
            bytes: space.available_bytes.saturating_sub(taken.bytes),
            inodes: inodes.saturating_sub(taken.inodes),
        };
        self.read_only = space.read_only;
        self.asked_at_ns = Some(now_ns);
        Ok(())
    }

    fn take(&mut self, cost: Cost) -> Result<(), Stop> {
        if self.read_only {
            return Err(Errno::ROFS.into());
        }
        if cost == Cost::NONE {
            return Ok(());
        }
        if self.shortage == Some(Errno::DQUOT) {
            return Err(Errno::DQUOT.into());
        }
        match self.room.minus(cost) {
            Some(room) => self.room = room,
            None if self.waiting_sum.plus(self.unplaced) == Cost::NONE => {
                return Err(Errno::NOSPC.into());
            }
            None => return Err(Stop::NoSpace),
        }
        self.unplaced = self.unplaced.plus(cost);
        Ok(())
    }

    fn take_back(&mut self, cost: Cost) {
        self.unplaced = self.unplaced.minus(cost).expect("it was taken before");
        self.room = self.room.plus(cost);
    }

    fn spend(&mut self, cost: Cost) {
        self.unplaced = self.unplaced.minus(cost).expect("it was taken before");
    }

    fn place(&mut self, cost: Cost, lsn: Lsn) {
        if cost == Cost::NONE {
            return;
        }
        self.unplaced = self.unplaced.minus(cost).expect("it was taken before");
        self.waiting_sum = self.waiting_sum.plus(cost);
        match self.waiting.back_mut() {
            Some(last) if lsn.0 < last.first.0 + TOGETHER_BYTES => {
                last.last = last.last.max(lsn);
                last.cost = last.cost.plus(cost);
            }
            _ => self.waiting.push_back(Waiting { first: lsn, last: lsn, cost }),
        }
    }

    fn came_home(&mut self, upto: Lsn) {
        while let Some(oldest) = self.waiting.pop_front_if(|oldest| oldest.last < upto) {
            let left = self.waiting_sum.minus(oldest.cost);
            self.waiting_sum = left.expect("it was added before");
        }
    }
}

#[cfg(test)]
mod tests;

//! Waiting for what a change needs: room in the log or the home, a turn, or a file.
//!
//! Promise: a change is tried again when it may go, and refused when it never will.
//! Never: holds a lock while it waits.

use std::sync::atomic::Ordering;
use std::time::Duration;

use holdfast_io::tree::{Errno, Waits, asker};
use holdfast_log::AppendError;

use super::DirectoryVolume;
use super::cleaning::CLEAN_LOOK;
use crate::error::Stop;
use crate::shares::Wait;
use crate::words;

/// How long a change waits for room before the home is asked again whether it takes it at all.
const ROOM_PATIENCE: Duration = Duration::from_secs(1);

impl DirectoryVolume {
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

    /// Brings home what waits, so that its files can be closed. A home that fails is tried again.
    fn let_files_go(&self) {
        let upto = self.log.marks().tail;
        self.settle();
        if self.log.marks().released < upto {
            std::thread::sleep(CLEAN_LOOK);
        }
    }
}

/// A change that waits for room in the log. It is counted each time that it begins to wait, so that
/// whoever looks from outside sees that it does.
struct Stall<'v> {
    volume: &'v DirectoryVolume,
    from_ns: u64,
}

impl<'v> Stall<'v> {
    fn begin(volume: &'v DirectoryVolume) -> Stall<'v> {
        // Whoever waited before has woken it.
        if volume.waiting_for_room.fetch_add(1, Ordering::Relaxed) == 0 {
            volume.wake_cleaner();
        }
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

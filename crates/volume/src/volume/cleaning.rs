//! When the home gets what the log has: in the background, when somebody waits, and at the end.
//!
//! Promise: what a volume is given back with is complete and ordinary; until then a home that fails
//! is tried again. While the power fails, and memory is drained, the disk is left to that.
//! Never: holds up whoever waits for room, so that changes can gather or for a drain.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::DirectoryVolume;
use crate::clean::Cleaned;
use crate::clean::cleaner::Cleaner;
use crate::clean::error::CleanError;
use crate::clean::in_turn::InTurn;
use crate::clean::pace::Pace;
use crate::home::space::shortage_in;
use crate::words;

/// How soon the cleaner looks again for what somebody waits for.
pub(super) const CLEAN_LOOK: Duration = Duration::from_millis(5);
/// Between two windows. A window costs several flushes, whatever is in it, and the drain may wait
/// for the same disk.
const GATHERING: Duration = Duration::from_millis(200);

impl DirectoryVolume {
    /// Applies what the device has to the home, one window. What nobody can reach any more is
    /// removed first, as far as the log has room.
    pub fn clean_step(&self) -> Result<Cleaned, CleanError> {
        self.step(InTurn::now, Pace::Full)
    }

    fn step(
        &self,
        cleaner: fn(&InTurn) -> MutexGuard<'_, Cleaner>,
        pace: Pace<'_>,
    ) -> Result<Cleaned, CleanError> {
        self.remove_unreachable();
        let stepped = cleaner(&self.cleaning).step(self, pace);
        if stepped.is_err() {
            self.settling.cleaner_failed();
        }
        self.space.tell_shortage(shortage_in(&stepped));
        stepped
    }

    /// Cleans until told to stop. A home that fails is tried again: the log still has everything.
    ///
    /// Who tells it to stop unparks its thread.
    pub fn run_cleaner(&self, stop: &AtomicBool) {
        self.cleaning.is_done_by(thread::current());
        let give_way = || self.give_way(stop);
        while !stop.load(Ordering::Relaxed) {
            if self.has_to_rest() {
                thread::park_timeout(CLEAN_LOOK);
                continue;
            }
            match self.step(InTurn::at_leisure, Pace::Beside(&give_way)) {
                // What ends a window says nothing of how much is waiting behind it.
                Ok(cleaned) if cleaned.more => continue,
                Ok(_) => {}
                // If the log is what failed, or does not hear of it, it says so itself.
                Err(error) => drop(self.log.set_word(words::HOME_ERRNO, error.errno())),
            }
            self.let_changes_gather(stop);
        }
    }

    /// Leaves the disk to a drain, in the middle of a window.
    fn give_way(&self, stop: &AtomicBool) {
        while self.has_to_rest() && !stop.load(Ordering::Relaxed) {
            thread::park_timeout(CLEAN_LOOK);
        }
    }

    /// Whether the disk is a drain's, and nobody waits for what cleaning gives.
    fn has_to_rest(&self) -> bool {
        !self.cleaning.is_wanted() && !self.is_room_wanted() && self.is_hurried()
    }

    /// Lets several changes become one window, unless somebody waits for the room they take: then
    /// what the device does not have yet may be on its way. Who comes to wait wakes it.
    fn let_changes_gather(&self, stop: &AtomicBool) {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        match self.is_room_wanted() {
            true => thread::sleep(CLEAN_LOOK),
            false => thread::park_timeout(GATHERING),
        }
    }

    /// Somebody has begun to wait for room.
    pub(super) fn wake_cleaner(&self) {
        self.cleaning.wake();
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
        self.cleaning.now().close_aside()?;
        let root_ns = self.names().root_time();
        crate::clean::remove_orphans(&*self.home, root_ns)?;
        // Nobody goes on from here: the next one to open this memory begins on a complete home.
        self.log.set_word(words::OPENED, 0).map_err(CleanError::Word)
    }

    pub(super) fn bring_home(&self) {
        let upto = self.log.marks().tail;
        if self.log.commit(upto).is_ok() {
            while self.log.marks().released < upto
                && self.clean_step().is_ok_and(|cleaned| !cleaned.is_idle())
            {}
        }
    }
}

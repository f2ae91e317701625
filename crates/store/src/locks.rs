//! Locks of transactions on keys and on the gaps between them.
//!
//! Promise: two transactions never have locks at once that do not bear one another; who waits is
//! served in order, except that those who hold a lock and ask for more of it come first; a wait
//! that could never end is refused before it begins.
//! Never: waits while somebody holds a latch (its callers see to that: they try under a latch, and
//! wait without); knows a key or a tree.

pub(crate) mod blocked;
pub(crate) mod modes;
pub(crate) mod names;
pub(crate) mod waits;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use holdfast_pages::Slot;

use crate::locks::modes::Mode;
use crate::locks::names::{ByName, Name};
use crate::locks::waits::Waits;
use crate::pool::counts::LockStatistics;
use crate::pool::latches;
use entry::{Answer, Entry, Outcome};

mod entry;

/// Parts of the table that are locked apart.
const SHARDS: usize = 256;

type Shard = HashMap<Name, Entry, ByName>;

/// The locks of a store.
pub(crate) struct Locks {
    shards: Box<[Mutex<Shard>]>,
    waits: Waits,
    waited: AtomicU64,
    deadlocks: AtomicU64,
}

/// A transaction as the locks know it: its number, and the names it has locks on. It is for one
/// thread at a time, and has to give its locks back ([`Locks::release`]) before its number is used
/// again.
#[derive(Debug)]
pub(crate) struct Holder {
    slot: Slot,
    names: Vec<Name>,
}

/// Why a lock was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockError {
    /// Those who have it wait for this transaction. Roll it back, and try again from its beginning.
    Deadlock,
    /// A transaction has it that nobody runs any more. Roll that one back, then ask again.
    Loser(Slot),
    /// Others have it, and whoever asked did not want to wait, or has waited long enough.
    Busy,
}

impl Holder {
    /// A transaction without locks.
    #[must_use]
    pub(crate) fn new(slot: Slot) -> Holder {
        Holder { slot, names: Vec::new() }
    }

    /// Its number.
    #[must_use]
    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }
}

impl Default for Locks {
    fn default() -> Locks {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let (waited, deadlocks) = (AtomicU64::new(0), AtomicU64::new(0));
        Locks { shards, waits: Waits::default(), waited, deadlocks }
    }
}

impl Locks {
    /// Adds `mode` to what the holder has on `name`, unless it would have to wait.
    #[must_use = "without the lock nothing may be read or changed"]
    pub(crate) fn try_lock(&self, holder: &mut Holder, name: Name, mode: Mode) -> bool {
        let mut shard = self.shard(name);
        let entry = shard.entry(name).or_default();
        let is_new = entry.mode_of(holder.slot) == Mode::NONE;
        let granted = entry.try_grant(holder.slot, mode);
        if granted && is_new {
            holder.names.push(name);
        }
        granted
    }

    /// Adds `mode` to what the holder has on `name`, and waits until it can be had.
    ///
    /// # Errors
    /// See [`LockError`]; the holder has what it had.
    pub(crate) fn lock(
        &self,
        holder: &mut Holder,
        name: Name,
        mode: Mode,
    ) -> Result<(), LockError> {
        self.lock_until(holder, name, mode, None)
    }

    /// Like [`Locks::lock`], but waits for so long at most.
    ///
    /// # Errors
    /// See [`LockError`]; the holder has what it had.
    pub(crate) fn lock_within(
        &self,
        holder: &mut Holder,
        name: Name,
        mode: Mode,
        time: Duration,
    ) -> Result<(), LockError> {
        self.lock_until(holder, name, mode, Some(time))
    }

    fn lock_until(
        &self,
        holder: &mut Holder,
        name: Name,
        mode: Mode,
        time: Option<Duration>,
    ) -> Result<(), LockError> {
        let (answer, is_new) = self.ask(holder.slot, name, mode);
        match answer {
            Answer::Granted => {}
            Answer::Loser(slot) => return Err(LockError::Loser(slot)),
            Answer::Queued(bell) => self.wait(holder.slot, name, &bell, time)?,
        }
        if is_new {
            holder.names.push(name);
        }
        Ok(())
    }

    /// Like [`Locks::lock`], but never waits.
    ///
    /// # Errors
    /// See [`LockError`]; the holder has what it had.
    pub(crate) fn lock_now(
        &self,
        holder: &mut Holder,
        name: Name,
        mode: Mode,
    ) -> Result<(), LockError> {
        if self.try_lock(holder, name, mode) {
            return Ok(());
        }
        let loser = |entry: &Entry| {
            let wanted = entry.mode_of(holder.slot).join(mode);
            entry.loser_against(holder.slot, wanted)
        };
        let loser = self.shard(name).get(&name).and_then(loser);
        Err(loser.map_or(LockError::Busy, LockError::Loser))
    }

    /// What the holder has on `name`.
    #[must_use]
    pub(crate) fn mode_of(&self, holder: &Holder, name: Name) -> Mode {
        self.shard(name).get(&name).map_or(Mode::NONE, |entry| entry.mode_of(holder.slot))
    }

    /// Who has a lock on `name`, or asked for one before, that does not bear this one.
    pub(crate) fn in_the_way(&self, holder: &Holder, name: Name, mode: Mode) -> Vec<Slot> {
        let in_the_way = |entry: &Entry| entry.in_the_way(holder.slot, mode).collect();
        let mut found: Vec<Slot> = self.shard(name).get(&name).map_or(Vec::new(), in_the_way);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether nobody has a lock on `name`, and nobody waits for one.
    #[must_use]
    pub(crate) fn is_free(&self, name: Name) -> bool {
        !self.shard(name).contains_key(&name)
    }

    /// What became of locks.
    pub(crate) fn statistics(&self) -> LockStatistics {
        let names = |shard: &Mutex<Shard>| {
            shard.lock().expect("nothing panics with a part of the locks").len() as u64
        };
        LockStatistics {
            held: self.shards.iter().map(names).sum(),
            waits: self.waited.load(Ordering::Relaxed),
            deadlocks: self.deadlocks.load(Ordering::Relaxed),
        }
    }

    /// Shows every key that somebody may change, in no order.
    pub(crate) fn survey(&self, mut each: impl FnMut(Slot, Name)) {
        for shard in &self.shards {
            let shard = shard.lock().expect("nothing panics with a part of the locks");
            let changed =
                shard.iter().filter_map(|(name, entry)| Some((entry.exclusive()?, *name)));
            changed.for_each(|(slot, name)| each(slot, name));
        }
    }

    /// Gives a transaction that ended with the process before its right to change `name` again.
    /// Whoever asks for what this excludes gets [`LockError::Loser`] instead of waiting.
    pub(crate) fn adopt(&self, loser: &mut Holder, name: Name) {
        // Whatever is there: two losers may have changed keys that share a name.
        self.shard(name).entry(name).or_default().adopt(loser.slot, Mode::CHANGE);
        loser.names.push(name);
    }

    /// Nobody runs this transaction any more, which has not been rolled back: from now on it is
    /// like those that [`Locks::adopt`] is for.
    pub(crate) fn orphan(&self, holder: &Holder) {
        for name in &holder.names {
            self.update(*name, |entry| entry.orphan(holder.slot));
        }
    }

    /// Takes all locks back.
    pub(crate) fn release(&self, holder: &mut Holder) {
        for name in holder.names.drain(..) {
            self.update(name, |entry| entry.release(holder.slot));
        }
    }

    fn ask(&self, slot: Slot, name: Name, mode: Mode) -> (Answer, bool) {
        let mut shard = self.shard(name);
        let entry = shard.entry(name).or_default();
        let is_new = entry.mode_of(slot) == Mode::NONE;
        (entry.ask(slot, mode), is_new)
    }

    fn wait(
        &self,
        slot: Slot,
        name: Name,
        bell: &entry::Bell,
        time: Option<Duration>,
    ) -> Result<(), LockError> {
        latches::may_wait();
        self.waited.fetch_add(1, Ordering::Relaxed);
        let may_wait = self.waits.begin(slot, name, |slot, name| self.blockers(slot, name));
        if !may_wait && self.update(name, |entry| entry.give_up(slot)) == Some(true) {
            self.deadlocks.fetch_add(1, Ordering::Relaxed);
            return Err(LockError::Deadlock);
        }
        let rung = time.map_or_else(|| Some(bell.wait()), |time| bell.wait_for(time));
        let is_over =
            rung.is_none() && self.update(name, |entry| entry.give_up(slot)) == Some(true);
        // Who is not queued any more was granted it, or told, a moment ago.
        let outcome = if is_over { None } else { rung.or_else(|| Some(bell.wait())) };
        self.waits.end(slot);
        let Some(outcome) = outcome else { return Err(LockError::Busy) };
        match outcome {
            Outcome::Granted => Ok(()),
            Outcome::Loser(loser) => Err(LockError::Loser(loser)),
        }
    }

    /// Whom the transaction waits for at `name` now.
    fn blockers(&self, slot: Slot, name: Name) -> Vec<Slot> {
        self.shard(name).get(&name).map_or(Vec::new(), |entry| entry.blockers_of(slot).collect())
    }

    /// Changes an entry, and forgets it if nothing is left there.
    fn update<T>(&self, name: Name, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let mut shard = self.shard(name);
        let entry = shard.get_mut(&name)?;
        let changed = change(entry);
        if entry.is_empty() {
            shard.remove(&name);
        }
        Some(changed)
    }

    fn shard(&self, name: Name) -> MutexGuard<'_, Shard> {
        self.shards[name.part(SHARDS)].lock().expect("nothing panics with a part of the locks")
    }
}

#[cfg(test)]
mod tests;

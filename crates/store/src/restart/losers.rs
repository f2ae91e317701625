//! Transactions that nobody runs any more, and that are not rolled back: most were running when the
//! process before ended.
//!
//! Promise: what a loser changed is locked until it is undone; each is rolled back once, by whoever
//! needs it first, and its number is taken until then.
//! Never: knows trees or records; starts a thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use holdfast_pages::canary::{Invariant, holds};
use holdfast_pages::{Slot, Unfit};

use crate::locks::names::Name;
use crate::locks::{Holder, Locks};
use crate::restart::rollback::{Changes, Undoer};

/// Losers that are not rolled back yet.
#[derive(Default)]
pub(crate) struct Losers(Mutex<BTreeMap<Slot, Arc<Mutex<Loser>>>>);

struct Loser {
    locks: Holder,
    changes: Changes,
    is_over: bool,
}

impl Losers {
    /// Takes over what analysis found, each loser with the bodies of its changes, oldest first, and
    /// locks all that they changed: `names_of` tells the names of what a body is about. Nothing
    /// else may ask for locks before this returns.
    ///
    /// # Errors
    /// Whatever `names_of` says of a body that it does not understand.
    pub(crate) fn adopt<E: From<Unfit>>(
        found: &[(Slot, Vec<Vec<u8>>)],
        locks: &Locks,
        names_of: impl Fn(&[u8], &mut dyn FnMut(Name)) -> Result<(), E>,
    ) -> Result<Losers, E> {
        let adopt = |(slot, bodies): &(Slot, Vec<Vec<u8>>)| {
            let loser = Loser::adopt(*slot, bodies, locks, &names_of)?;
            Ok((*slot, Arc::new(Mutex::new(loser))))
        };
        Ok(Losers(Mutex::new(found.iter().map(adopt).collect::<Result<_, E>>()?)))
    }

    /// Takes over a transaction of this process that could not be rolled back. Its locks stay, and
    /// whoever waits for one of them is told.
    pub(crate) fn add(&self, holder: Holder, changes: Changes, locks: &Locks) {
        let slot = holder.slot();
        let loser = Arc::new(Mutex::new(Loser { locks: holder, changes, is_over: false }));
        // Held, so that nobody rolls it back before all are told.
        let held = loser.lock().expect("nobody else has it");
        self.losers().insert(slot, Arc::clone(&loser));
        locks.orphan(&held.locks);
    }

    /// The numbers of those that are left; no other transaction may have them.
    #[must_use]
    pub(crate) fn slots(&self) -> Vec<Slot> {
        self.losers().keys().copied().collect()
    }

    /// Undoes what the loser changed, says so, and gives its locks back, unless somebody has done
    /// that; waits for somebody who is at it. No latch may be held. After an error the loser is as
    /// far as it came, and this can be called again.
    ///
    /// # Errors
    /// The undoer's.
    pub(crate) fn roll_back<U: Undoer + ?Sized>(
        &self,
        slot: Slot,
        locks: &Locks,
        undoer: &U,
    ) -> Result<(), U::Error> {
        let Some(loser) = self.losers().get(&slot).cloned() else { return Ok(()) };
        let mut loser = loser.lock().expect("nothing panics with a loser");
        if !loser.is_over {
            loser.changes.abort(slot, undoer)?;
            loser.is_over = true;
            // First: the number is free when it is not among the losers any more.
            locks.release(&mut loser.locks);
            self.losers().remove(&slot);
        }
        Ok(())
    }

    /// Rolls one loser back: the first that can be, for one may need a page that cannot be had.
    /// Returns whether there was one.
    ///
    /// # Errors
    /// The undoer's, if it could undo none.
    pub(crate) fn step<U: Undoer + ?Sized>(
        &self,
        locks: &Locks,
        undoer: &U,
    ) -> Result<bool, U::Error> {
        let mut refused = Ok(false);
        for slot in self.slots() {
            match self.roll_back(slot, locks, undoer) {
                Ok(()) => return Ok(true),
                Err(error) => refused = refused.and(Err(error)),
            }
        }
        refused
    }

    fn losers(&self) -> MutexGuard<'_, BTreeMap<Slot, Arc<Mutex<Loser>>>> {
        self.0.lock().expect("nothing panics with the losers")
    }
}

impl Loser {
    fn adopt<E: From<Unfit>>(
        slot: Slot,
        bodies: &[Vec<u8>],
        locks: &Locks,
        names_of: impl Fn(&[u8], &mut dyn FnMut(Name)) -> Result<(), E>,
    ) -> Result<Loser, E> {
        let (mut held, mut changes) = (Holder::new(slot), Changes::default());
        for body in bodies {
            names_of(body, &mut |name| {
                if holds(Invariant::LosersAreLocked) {
                    locks.adopt(&mut held, name);
                }
            })?;
            changes.adopt(body)?;
        }
        Ok(Loser { locks: held, changes, is_over: false })
    }
}

#[cfg(test)]
mod tests;

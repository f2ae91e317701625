//! Which transaction waits where, so that none waits for ever.
//!
//! Promise: of transactions that wait for one another in a circle, the one whose wait would close
//! it is told; nobody else is.
//! Never: knows locks. Whom a transaction waits for is asked when it matters, because it changes
//! while the transaction waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use holdfast_pages::Slot;

use crate::locks::names::Name;

/// The transactions that wait, and for which name.
#[derive(Default)]
pub(crate) struct Waits(Mutex<BTreeMap<Slot, Name>>);

impl Waits {
    /// Notes that a transaction, which is in the queue at `name` already, is going to sleep.
    /// `blockers` says whom a transaction waits for at a name. False if one of those waits, in the
    /// end, for this one; then nothing was noted.
    // Whoever is noted stays where he is until he is granted his lock. So the last one to be noted
    // of a circle sees all of it, and a circle that was seen piece by piece was there as a whole.
    pub(crate) fn begin(
        &self,
        slot: Slot,
        name: Name,
        blockers: impl Fn(Slot, Name) -> Vec<Slot>,
    ) -> bool {
        let mut waits = self.waits();
        waits.insert(slot, name);
        let may_wait = !reaches(&waits, slot, blockers);
        if !may_wait {
            waits.remove(&slot);
        }
        may_wait
    }

    /// Notes that the transaction does not wait any more.
    pub(crate) fn end(&self, slot: Slot) {
        self.waits().remove(&slot);
    }

    /// Whether the transaction waits.
    #[cfg(test)]
    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.waits().contains_key(&slot)
    }

    fn waits(&self) -> MutexGuard<'_, BTreeMap<Slot, Name>> {
        self.0.lock().expect("nothing panics with the waits")
    }
}

/// Whether the transaction waits for itself in the end.
fn reaches(
    waits: &BTreeMap<Slot, Name>,
    slot: Slot,
    blockers: impl Fn(Slot, Name) -> Vec<Slot>,
) -> bool {
    let (mut seen, mut next) = (BTreeSet::new(), vec![slot]);
    while let Some(at) = next.pop() {
        let found = waits.get(&at).map_or(Vec::new(), |name| blockers(at, *name));
        if found.contains(&slot) {
            return true;
        }
        next.extend(found.into_iter().filter(|slot| seen.insert(*slot)));
    }
    false
}

#[cfg(test)]
mod tests;

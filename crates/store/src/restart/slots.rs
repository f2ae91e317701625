//! Numbers of running transactions.
//!
//! Promise: no two that run at once have the same; small ones are preferred, as they are short in
//! records.
//! Never: gives one that a loser had when the store was opened.

use std::sync::{Mutex, MutexGuard};

use holdfast_pages::Slot;

/// The numbers that are not in use.
#[derive(Debug)]
pub(crate) struct Slots(Mutex<Free>);

#[derive(Debug)]
struct Free {
    /// Given back; the last one is given next.
    back: Vec<Slot>,
    /// Never given, from here on.
    next: u32,
}

impl Slots {
    /// All numbers but these, which are in order.
    pub(crate) fn without(taken: &[Slot]) -> Slots {
        let next = taken.last().map_or(0, |last| u32::from(last.0) + 1);
        let below = (0..next).map(|slot| Slot(slot as u16)).rev();
        let back = below.filter(|slot| taken.binary_search(slot).is_err()).collect();
        Slots(Mutex::new(Free { back, next }))
    }

    /// A number, unless 65536 are in use.
    pub(crate) fn take(&self) -> Option<Slot> {
        let mut free = self.free();
        if let Some(slot) = free.back.pop() {
            return Some(slot);
        }
        let slot = u16::try_from(free.next).ok()?;
        free.next += 1;
        Some(Slot(slot))
    }

    /// Takes a number back.
    pub(crate) fn give_back(&self, slot: Slot) {
        self.free().back.push(slot);
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.0.lock().expect("nothing panics with the numbers")
    }
}

#[cfg(test)]
mod tests;

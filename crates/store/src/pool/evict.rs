//! Which page leaves its frame when another one needs it.
//!
//! Promise: a page leaves without being written anywhere, since its records are; before anybody can
//! miss it, it is noted how far they go.
//! Never: waits, for a latch or for the log; takes a page whose records are not stable.
//!
//! A hand goes round the frames and takes the first page that was not used since it last passed
//! (CLOCK: Corbato, "A paging experiment with the Multics system", 1968).

use std::sync::RwLockWriteGuard;
use std::sync::atomic::Ordering;

use holdfast_pages::canary::{Invariant, Point, at as pass, holds};
use holdfast_pages::{PageNumber, Rsn};

use crate::face::config::Eviction;
use crate::pool::frames::Held;
use crate::pool::{Below, Pool};

/// How often the hand goes round before it gives up: once to see what is used, once to take.
const ROUNDS: usize = 2;
/// How many pages are looked at for a clean one, if those come first.
const LOOKS: usize = 32;

impl<B: Below> Pool<B> {
    /// A frame whose page has left, latched; none if no page can leave now.
    pub(crate) fn evict(&self) -> Option<(usize, RwLockWriteGuard<'_, Held>)> {
        let stable = self.below.stable();
        let mut looks = match self.eviction {
            Eviction::Unused => 0,
            Eviction::CleanFirst => LOOKS.min(self.frames.len() / 2),
        };
        let cleaned = self.below.cleaned();
        (0..ROUNDS * self.frames.len()).find_map(|_| {
            let at = self.hand.fetch_add(1, Ordering::Relaxed) % self.frames.len();
            let mut held = self.victim(at, stable)?;
            if looks > 0 && held.page().rsn() >= cleaned {
                looks -= 1;
                return None;
            }
            self.leave(&mut held);
            Some((at, held))
        })
    }

    /// The frame, if its page may leave.
    fn victim(&self, at: usize, stable: Rsn) -> Option<RwLockWriteGuard<'_, Held>> {
        let frame = &self.frames[at];
        if frame.used.swap(false, Ordering::Relaxed) {
            return None;
        }
        let held = frame.try_write()?;
        let may = held.number != PageNumber::NONE && held.page().rsn() < stable;
        may.then_some(held)
    }

    /// Takes the page out. Whoever finds it in no frame loads it as it is noted, so it is noted
    /// first.
    fn leave(&self, held: &mut Held) {
        let (number, rsn) = (held.number, held.page().rsn());
        let in_order = holds(Invariant::NotedBeforeEvicted);
        if in_order {
            self.below.note(number, rsn);
        }
        self.table.clear(number);
        pass(Point::Evicting);
        if !in_order {
            self.below.note(number, rsn);
        }
        held.number = PageNumber::NONE;
        held.page_mut().clear();
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }
}

//! The drain: which published bytes are on their way to the device, and what is durable.
//!
//! A **flight** is a stretch of the log that somebody writes and syncs. Several may be under way,
//! and land in any order:
//!
//! ```text
//!          durable             assigned      tail
//! ---------|==landed==|==flying==|-----------|
//! ```
//!
//! Promise: `durable` advances only over flights that have landed, in order and without a gap;
//! all flights under way lie in the span that holds `durable`, so a span is begun only when the
//! one before is durable (which recovery relies on); after a failure nothing is begun or advanced
//! again.
//! Never: writes past the published tail, assigns a byte twice.

use crate::Lsn;
use crate::frame::BLOCK_BYTES;
use crate::ring::Geometry;

/// Most flights at once: what common devices gain from, by measurement.
pub const FLIGHTS_MAX: usize = 8;

/// Bytes to be written, `[from, to)`, whole blocks inside one span; then to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// First byte.
    pub from: Lsn,
    /// One past the last byte.
    pub to: Lsn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    flight: Flight,
    landed: bool,
}

/// The drain of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    geometry: Geometry,
    durable: Lsn,
    assigned: Lsn,
    /// Under way, or landed behind one that is, in no order.
    slots: [Option<Slot>; FLIGHTS_MAX],
    /// How many may be under way at once.
    depth: usize,
    poisoned: bool,
}

impl Drain {
    /// A drain that has everything below `durable` (a multiple of a block) behind it, one flight at
    /// a time.
    #[must_use]
    pub const fn new(geometry: Geometry, durable: Lsn) -> Drain {
        assert!(durable.is_aligned(BLOCK_BYTES));
        let slots = [None; FLIGHTS_MAX];
        Drain { geometry, durable, assigned: durable, slots, depth: 1, poisoned: false }
    }

    /// Allows so many flights at once, 1 to [`FLIGHTS_MAX`], from the next one on.
    pub const fn set_depth(&mut self, depth: usize) {
        assert!(depth > 0 && depth <= FLIGHTS_MAX);
        self.depth = depth;
    }

    /// Everything below is on the device.
    #[must_use]
    pub const fn durable(&self) -> Lsn {
        self.durable
    }

    /// Everything below is durable, landed or flying: the next flight begins here.
    #[must_use]
    pub const fn assigned(&self) -> Lsn {
        self.assigned
    }

    /// Whether a flight failed, ever.
    #[must_use]
    pub const fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    /// How many flights hold a slot: all are under way but those that landed behind one that is.
    #[must_use]
    pub fn flying(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Whether a flight could begin, if something were published. While none can, one is under way,
    /// or the drain is poisoned.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let in_span = self.assigned < self.geometry.span_end(self.durable);
        !self.poisoned && in_span && self.flying() < self.depth
    }

    /// Begins a flight of what is published below `tail`, up to the end of its span; None if there
    /// is nothing, or no room. A tail inside the span has been sealed to a block, so that the next
    /// flight rewrites nothing.
    #[must_use]
    pub fn begin(&mut self, tail: Lsn) -> Option<Flight> {
        assert!(self.assigned <= tail);
        if self.assigned == tail || !self.has_room() {
            return None;
        }
        let to = tail.min(self.geometry.span_end(self.assigned));
        assert!(to.is_aligned(BLOCK_BYTES));
        let flight = Flight { from: self.assigned, to };
        let free = self.slots.iter_mut().find(|slot| slot.is_none())?;
        *free = Some(Slot { flight, landed: false });
        self.assigned = to;
        Some(flight)
    }

    /// The flight's bytes were written, and then synced. Returns what is durable now.
    ///
    /// # Panics
    /// If it is not under way.
    pub fn land(&mut self, flight: Flight) -> Lsn {
        let known = self.slots.iter_mut().flatten().find(|slot| slot.flight == flight);
        let slot = known.expect("what lands was begun, once");
        assert!(!slot.landed, "what lands was begun, once");
        slot.landed = true;
        while !self.poisoned && self.pass() {}
        self.durable
    }

    /// Something failed. For good: what the device has behind `durable` is not known any more.
    pub const fn fail(&mut self) {
        self.poisoned = true;
    }

    /// Advances over the flight at the durable mark, if it has landed.
    fn pass(&mut self) -> bool {
        let at = self.durable;
        let next = |slot: &Option<Slot>| slot.is_some_and(|s| s.landed && s.flight.from == at);
        let Some(slot) = self.slots.iter_mut().find(|slot| next(slot)) else { return false };
        let landed = slot.take().map(|slot| slot.flight.to);
        self.durable = landed.unwrap_or(at);
        true
    }
}

#[cfg(test)]
mod tests;

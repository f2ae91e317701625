//! The drain: moves what is published to the device, one span at a time, in order.
//!
//! ```text
//! Idle --published--> Writing --written--> Syncing --synced--> Idle (durable advanced)
//!   any --failed--> Poisoned, for good
//! ```
//!
//! Promise: `durable` advances only over bytes that were written and then synced, in order; a drain
//! stays inside one span, so inside one file; after a failure nothing is written, synced or
//! advanced again.
//! Never: has two drains under way, writes past the published tail, retries.

use crate::Lsn;
use crate::frame::BLOCK_BYTES;
use crate::ring::Geometry;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Everything below `tail` is published, and sealed to a block.
    Published {
        /// The tail.
        tail: Lsn,
    },
    /// The last write command was carried out up to `to`.
    Written {
        /// First byte not written.
        to: Lsn,
    },
    /// The last sync command was carried out.
    Synced,
    /// A command failed.
    Failed,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Nothing.
    Rest,
    /// Write these bytes of the ring to their segment.
    Write {
        /// First byte.
        from: Lsn,
        /// One past the last byte.
        to: Lsn,
    },
    /// Sync the segment that was written.
    Sync,
    /// Set the durable mark.
    Advance {
        /// The new mark.
        durable: Lsn,
    },
    /// Tell every waiter, and accept nothing more.
    Poison,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Writing { from: Lsn, target: Lsn },
    Syncing { target: Lsn },
    Poisoned,
}

/// The drain of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    geometry: Geometry,
    durable: Lsn,
    state: State,
}

impl Drain {
    /// A drain that has everything below `durable` (a multiple of a block) behind it.
    #[must_use]
    pub const fn new(geometry: Geometry, durable: Lsn) -> Drain {
        assert!(durable.is_aligned(BLOCK_BYTES));
        Drain { geometry, durable, state: State::Idle }
    }

    /// Everything below is on the device.
    #[must_use]
    pub const fn durable(&self) -> Lsn {
        self.durable
    }

    /// Whether a command failed, ever.
    #[must_use]
    pub const fn is_poisoned(&self) -> bool {
        matches!(self.state, State::Poisoned)
    }

    /// Takes an event and says what is to be done. An event that does not answer the last command
    /// is our own mistake and panics.
    #[must_use]
    pub const fn on(&mut self, event: Event) -> Command {
        match (self.state, event) {
            (State::Poisoned, _) => Command::Poison,
            (_, Event::Failed) => {
                self.state = State::Poisoned;
                Command::Poison
            }
            (State::Idle, Event::Published { tail }) => self.start(tail),
            (_, Event::Published { .. }) => Command::Rest,
            (State::Writing { from, target }, Event::Written { to }) => {
                self.written(from, to, target)
            }
            (State::Syncing { target }, Event::Synced) => self.synced(target),
            _ => panic!("an event that answers no command"),
        }
    }

    const fn start(&mut self, tail: Lsn) -> Command {
        assert!(self.durable.0 <= tail.0);
        if self.durable.0 == tail.0 {
            return Command::Rest;
        }
        let span_end = self.geometry.span_end(self.durable);
        let target = if tail.0 < span_end.0 { tail } else { span_end };
        assert!(target.is_aligned(BLOCK_BYTES)); // sealed: the next drain rewrites nothing
        self.state = State::Writing { from: self.durable, target };
        Command::Write { from: self.durable, to: target }
    }

    const fn written(&mut self, from: Lsn, to: Lsn, target: Lsn) -> Command {
        assert!(from.0 < to.0 && to.0 <= target.0);
        if to.0 < target.0 {
            self.state = State::Writing { from: to, target };
            return Command::Write { from: to, to: target };
        }
        self.state = State::Syncing { target };
        Command::Sync
    }

    const fn synced(&mut self, target: Lsn) -> Command {
        self.durable = target;
        self.state = State::Idle;
        Command::Advance { durable: target }
    }
}

#[cfg(test)]
mod tests;

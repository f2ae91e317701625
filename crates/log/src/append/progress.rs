//! What those who wait for a device and those who drain to it share.
//!
//! Promise: whoever waits is called when its answer is there, or when it is to drain itself.
//! Never: writes.

use std::io;
use std::sync::{Arc, Condvar, MutexGuard};
use std::time::Duration;

use holdfast_core::Lsn;
use holdfast_core::drain::Drain;

use crate::append::rate::Rate;
use crate::append::waiters::{Waiter, Waiters, call_on};
use crate::error::CommitError;
use crate::segments::parity::Stripes;

/// Who were answered together come back together, nearly. Up to so many are waited for, because
/// fewer take off without half of the others; more fill one flight while another is under way.
const CROWD_MAX: usize = 7;

/// Who is to be woken.
pub(crate) struct Called {
    /// Everybody whose answer is there.
    answered: Vec<Arc<Waiter>>,
    /// Who is to fly next.
    next: Option<Arc<Waiter>>,
}

/// What those who wait and those who drain share.
pub(crate) struct Progress {
    pub(crate) poison: Option<Arc<io::Error>>,
    pub(crate) drain: Drain,
    /// The tail at which the last seal ended.
    pub(crate) sealed: Lsn,
    /// What parity is made of, if the log has any.
    pub(crate) stripes: Option<Stripes>,
    /// Whether somebody keeps flights from taking off.
    pub(crate) quiesced: bool,
    /// Threads that wait for a position.
    pub(crate) waiters: Waiters,
    /// How many threads wait for any progress.
    pub(crate) listeners: u32,
    pub(crate) rate: Rate,
    /// How many were answered when the durable mark moved last, besides who moved it.
    pub(crate) crowd: usize,
    /// Whether somebody waits for more frames before taking off.
    pub(crate) gathering: bool,
}

/// Threads that wait for any progress sleep on this.
#[derive(Default)]
pub(crate) struct Moved(Condvar);

impl Progress {
    pub(crate) fn new(
        drain: Drain,
        stripes: Option<Stripes>,
        poison: Option<Arc<io::Error>>,
    ) -> Progress {
        Progress {
            poison,
            sealed: drain.durable(),
            drain,
            stripes,
            quiesced: false,
            waiters: Waiters::default(),
            listeners: 0,
            rate: Rate::default(),
            crowd: 0,
            gathering: false,
        }
    }

    pub(crate) fn failure(&self) -> Result<(), CommitError> {
        self.poison.as_ref().map_or(Ok(()), |error| Err(CommitError::Poisoned(Arc::clone(error))))
    }

    /// Whether what lies below `upto` is on nobody's way, and a flight could take it.
    pub(crate) fn can_fly(&self, upto: Lsn) -> bool {
        self.drain.assigned() < upto && self.has_room()
    }

    fn has_room(&self) -> bool {
        !self.quiesced && self.drain.has_room()
    }

    /// Whether it pays to wait for those who were answered last.
    pub(crate) fn pays_to_gather(&self) -> bool {
        (1..=CROWD_MAX).contains(&self.crowd)
    }

    /// Takes those who are to be woken.
    pub(crate) fn called(&mut self) -> Called {
        let upto = if self.poison.is_some() { Lsn(u64::MAX) } else { self.drain.durable() };
        let answered = self.waiters.take_upto(upto);
        self.crowd = answered.len();
        let assigned = self.drain.assigned();
        let next = self.has_room().then(|| self.waiters.take_above(assigned)).flatten();
        Called { answered, next }
    }
}

impl Called {
    /// Wakes them. A few are soonest together again if one wakes them all; those of a crowd wake
    /// each other, behind who flies next.
    pub(crate) fn wake(self) {
        if self.answered.len() <= CROWD_MAX {
            self.answered.iter().chain(&self.next).for_each(|waiter| waiter.call());
        } else {
            self.next.iter().for_each(|waiter| waiter.call());
            call_on(&self.answered);
        }
    }
}

impl Moved {
    /// Wakes every listener, if there are any.
    pub(crate) fn tell(&self, progress: &Progress) {
        if progress.listeners > 0 {
            self.0.notify_all();
        }
    }

    pub(crate) fn listen<'a>(
        &self,
        mut progress: MutexGuard<'a, Progress>,
        timeout: Duration,
    ) -> MutexGuard<'a, Progress> {
        progress.listeners += 1;
        let waited = self.0.wait_timeout(progress, timeout);
        let (mut progress, _) = waited.expect("nothing panics with the progress");
        progress.listeners -= 1;
        progress
    }
}

//! What a log, its tickets, its readers and its threads share.
//!
//! Promise: an append comes back before the device is asked, unless the ring is full; who waits is
//! answered when the durable mark has passed, in the order of positions, or told why it will not.
//! Never: knows the type of a record.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use holdfast_io::Clock;
use holdfast_io::real::DirectoryLock;
use holdfast_log::{Appended, Health, Log, Lsn};
use holdfast_memory::Region;

use crate::error::{AppendError, CommitError};
use crate::sleepers::{Seat, Sleepers};
use crate::wrapping::Wrapping;

/// An open log without its types.
pub(crate) struct Shared {
    pub(crate) log: Arc<Log>,
    pub(crate) region: Arc<Region>,
    pub(crate) wrapping: Wrapping,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether a thread of the log drains it.
    pub(crate) drained: AtomicBool,
    pub(crate) closed: AtomicBool,
    sleepers: Sleepers,
    /// Last, so that the directory is free when nothing uses it any more.
    _lock: Option<Arc<DirectoryLock>>,
}

impl Shared {
    pub(crate) fn new(
        log: Arc<Log>,
        region: Arc<Region>,
        wrapping: Wrapping,
        clock: Arc<dyn Clock>,
        lock: Option<Arc<DirectoryLock>>,
    ) -> Shared {
        Shared {
            log,
            region,
            wrapping,
            clock,
            drained: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            sleepers: Sleepers::default(),
            _lock: lock,
        }
    }

    /// Refuses a child of the process that opened the log.
    pub(crate) fn check_opener(&self) -> Result<(), CommitError> {
        self.log.opener().check().map_err(|forked| CommitError::Failed(Arc::new(forked)))
    }

    /// Appends one set. A full ring is drained first, by whoever finds it full.
    pub(crate) fn append(&self, records: u16, set: &[u8]) -> Result<Appended, AppendError> {
        loop {
            if self.closed.load(Ordering::Relaxed) {
                return Err(AppendError::Closed);
            }
            match self.wrapping.append(&self.log, records, set) {
                Ok(appended) => return Ok(appended),
                Err(holdfast_log::AppendError::Full) => {}
                Err(error) => return Err(error.into()),
            }
            self.drain()?;
        }
    }

    /// Appends a mark: nothing below `released`, which is durable, is needed any more.
    pub(crate) fn mark(&self, released: Lsn) -> Result<(), CommitError> {
        loop {
            match self.log.mark(released) {
                Ok(()) => return Ok(()),
                Err(holdfast_log::AppendError::Poisoned(error)) => {
                    return Err(CommitError::Failed(error));
                }
                Err(_) => self.drain()?,
            }
        }
    }

    /// Returns when everything below `upto` is durable.
    pub(crate) fn commit(&self, upto: Lsn) -> Result<(), CommitError> {
        self.tell(self.log.commit(upto))
    }

    /// One write and sync of what has been appended.
    pub(crate) fn drain(&self) -> Result<(), CommitError> {
        self.tell(self.log.drain().map(|_| ()))
    }

    /// [`Shared::commit`] for a future. It looks again once it is among the sleepers, so no mark
    /// moves unseen between its look and its sleep.
    pub(crate) fn poll(
        &self,
        seat: &mut Seat,
        upto: Lsn,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), CommitError>> {
        if !self.drained.load(Ordering::Relaxed) {
            return Poll::Ready(self.commit(upto));
        }
        if let Some(outcome) = self.outcome(upto) {
            return Poll::Ready(outcome);
        }
        self.sleepers.add(seat, upto, context.waker());
        match self.outcome(upto) {
            Some(outcome) => Poll::Ready(outcome),
            None if self.drained.load(Ordering::Relaxed) => Poll::Pending,
            None => Poll::Ready(self.commit(upto)),
        }
    }

    /// Whether anything at or above `lsn` is durable, for a task; false once nothing will be. It
    /// looks again once it is among the sleepers, as [`Shared::poll`] does.
    pub(crate) fn poll_beyond(
        &self,
        seat: &mut Seat,
        lsn: Lsn,
        context: &mut Context<'_>,
    ) -> Poll<Result<bool, Arc<io::Error>>> {
        if let Some(outcome) = self.beyond(lsn) {
            return Poll::Ready(outcome);
        }
        self.sleepers.add(seat, lsn.advance(1), context.waker());
        self.beyond(lsn).map_or(Poll::Pending, Poll::Ready)
    }

    /// Forgets the task that polled with this seat. In a child that was forked there is none.
    pub(crate) fn leave(&self, seat: &mut Seat) {
        if self.log.opener().is_here() {
            self.sleepers.leave(seat);
        }
    }

    /// Wakes the tasks whose sets are durable; all, if no more will be, or nobody sees to it.
    /// A child that was forked has no such tasks.
    pub(crate) fn wake(&self, everybody: bool) {
        if !self.log.opener().is_here() {
            return;
        }
        self.sleepers.wake(everybody, || self.log.marks().durable);
    }

    /// Passes an outcome on to whoever sleeps.
    fn tell(&self, outcome: Result<(), holdfast_log::CommitError>) -> Result<(), CommitError> {
        let outcome = outcome.map_err(CommitError::from);
        match &outcome {
            Ok(()) => self.wake(false),
            Err(CommitError::Failed(_)) => self.wake(true),
            Err(_) => {}
        }
        outcome
    }

    /// Why the log accepts nothing any more.
    pub(crate) fn failure(&self) -> Option<Arc<io::Error>> {
        match self.log.health() {
            Health::Poisoned(error) => Some(error),
            _ => None,
        }
    }

    fn beyond(&self, lsn: Lsn) -> Option<Result<bool, Arc<io::Error>>> {
        let closed = self.closed.load(Ordering::Relaxed);
        let marks = self.log.marks();
        if marks.durable > lsn {
            return Some(Ok(true));
        }
        if let Some(error) = self.failure() {
            return Some(Err(error));
        }
        (closed && marks.durable == marks.tail).then_some(Ok(false))
    }

    fn outcome(&self, upto: Lsn) -> Option<Result<(), CommitError>> {
        if self.log.marks().durable >= upto {
            return Some(Ok(()));
        }
        self.failure().map(|error| Err(CommitError::Failed(error)))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared").field("log", &self.log).finish_non_exhaustive()
    }
}

//! The receipt for a set of records.
//!
//! Promise: resolves when the set is durable and not before, whichever way it is waited for;
//! tickets resolve in the order of their positions.
//! Never: loses the set when it is dropped: the next commit takes it along.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use holdfast_log::Lsn;

use crate::error::CommitError;
use crate::shared::Shared;
use crate::sleepers::Seat;

/// Where a set of records went, and the means to wait until it is durable: [`Ticket::wait`] in a
/// thread, or `.await`.
///
/// Awaited, it leaves the writing to the log's own thread ([`crate::Background`]); while the disk
/// is full it goes on waiting, and is answered once there is room.
///
/// It borrows the log. What outlives that borrow keeps [`Ticket::end`], and later asks the log
/// ([`crate::Log::commit_to`]).
#[derive(Clone, Copy, Debug)]
pub struct Ticket<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) lsn: Lsn,
    pub(crate) end: Lsn,
}

impl Ticket<'_> {
    /// Where the set begins.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Where the next set will begin: what to read on from, or a checkpoint.
    #[must_use]
    pub fn end(&self) -> Lsn {
        self.end
    }

    /// Whether the set is durable now.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.shared.log.marks().durable >= self.end
    }

    /// Returns when the set, and all that was appended before it, is durable: synced to the device.
    /// Threads that wait at the same time share one sync; one of them does it.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub fn wait(&self) -> Result<(), CommitError> {
        self.shared.commit(self.end)
    }
}

impl<'a> IntoFuture for Ticket<'a> {
    type Output = Result<(), CommitError>;
    type IntoFuture = Awaited<'a>;

    fn into_future(self) -> Awaited<'a> {
        Awaited { ticket: self, seat: Seat::default() }
    }
}

/// A ticket that is awaited. Its task, the one that polled last, is remembered for as long as there
/// is this.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct Awaited<'a> {
    ticket: Ticket<'a>,
    seat: Seat,
}

impl Future for Awaited<'_> {
    type Output = Result<(), CommitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Ticket { shared, end, .. } = self.ticket;
        shared.poll(&mut self.seat, end, context)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.ticket.shared.leave(&mut self.seat);
    }
}

//! Following a log while it grows.
//!
//! Promise: every record from some position on, in order, each as soon as it is durable; sleeping
//! until then costs nothing.
//! Never: polls, skips, shows what is not durable.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use holdfast_log::Lsn;

use crate::error::ReplayError;
use crate::format::Format;
use crate::read::replay::{Entry, Reader};
use crate::shared::Shared;
use crate::sleepers::Seat;

/// A reader that waits for more. There may be several, each at its own position.
pub struct Tail<R, F> {
    reader: Reader,
    seat: Seat,
    types: PhantomData<fn() -> (R, F)>,
}

impl<R, F: Format<R>> Tail<R, F> {
    pub(crate) fn new(shared: &Arc<Shared>, from: Lsn) -> Tail<R, F> {
        Tail { reader: Reader::new(shared, from), seat: Seat::default(), types: PhantomData }
    }

    /// The next record; `None` if none became durable within `timeout`.
    ///
    /// # Errors
    /// See [`ReplayError`]. The tail stays where it is, except that it goes on behind a record that
    /// is [`ReplayError::Undecodable`].
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Entry<R>>, ReplayError> {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        // The clock is asked only by who has to wait: it takes a tenth of the time of a record.
        let mut end_ns = None;
        loop {
            if self.reader.next(Lsn(u64::MAX))? {
                return self.reader.with(F::decode).map(Some);
            }
            let now_ns = self.reader.shared.clock.monotonic_ns();
            let end_ns = *end_ns.get_or_insert(now_ns.saturating_add(timeout_ns));
            if !self.wait(Duration::from_nanos(end_ns.saturating_sub(now_ns)))? {
                return Ok(None);
            }
        }
    }

    /// [`Tail::next`] for a task: it is woken when there is more, and nothing looks meanwhile.
    /// `None` once the log was closed or dropped and everything in it has been given.
    ///
    /// It is woken by whoever makes records durable: a thread of the log
    /// ([`crate::Background::DrainAndPrepare`]), a commit, or a wait for a ticket. What is durable
    /// is read from the device here and now, which blocks for as long as that takes.
    ///
    /// # Errors
    /// As [`Tail::next`].
    pub async fn next_durable(&mut self) -> Result<Option<Entry<R>>, ReplayError> {
        let waits = Waits(self);
        std::future::poll_fn(|context| waits.0.poll_next(context)).await.transpose()
    }

    /// [`Tail::next_durable`] as a stream has it, for whoever makes one of this. Who polled last is
    /// woken, unless the tail is gone by then.
    ///
    /// # Errors
    /// As [`Tail::next`].
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Entry<R>, ReplayError>>> {
        loop {
            match self.reader.next(Lsn(u64::MAX)) {
                Ok(true) => return Poll::Ready(Some(self.reader.with(F::decode))),
                Ok(false) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
            let at = self.reader.cursor.position();
            match self.reader.shared.poll_beyond(&mut self.seat, at, context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => return Poll::Ready(None),
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Some(Err(ReplayError::Failed(error))));
                }
            }
        }
    }

    /// Returns whether there is something durable to look at.
    fn wait(&self, timeout: Duration) -> Result<bool, ReplayError> {
        if self.reader.cursor.wait(timeout) {
            return Ok(true);
        }
        self.reader.shared.failure().map_or(Ok(false), |error| Err(ReplayError::Failed(error)))
    }
}

impl<R, F> Tail<R, F> {
    fn leave(&mut self) {
        self.reader.shared.leave(&mut self.seat);
    }
}

impl<R, F> Drop for Tail<R, F> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A tail for as long as a task awaits it.
struct Waits<'a, R, F>(&'a mut Tail<R, F>);

impl<R, F> Drop for Waits<'_, R, F> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl<R, F> fmt::Debug for Tail<R, F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cursor = &self.reader.cursor;
        out.debug_struct("Tail").field("cursor", cursor).finish_non_exhaustive()
    }
}

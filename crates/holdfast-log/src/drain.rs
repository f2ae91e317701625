//! Draining: published bytes go from the ring to their segment, and waiters learn the outcome.
//!
//! Whoever needs durability and finds nobody at it becomes the **leader** and drains for all who
//! wait; there is no other thread to wake. What is published while a leader writes is taken by the
//! next one, in one go: group commit.
//!
//! Promise: every waiter gets its own answer; after a failed write or sync it is the same one for
//! ever; the durable mark moves only after the sync.
//! Never: holds the region's lock during a write; writes from anywhere but the ring.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use holdfast_core::Lsn;
use holdfast_core::drain::{Command, Drain, Event};
use holdfast_core::frame::BLOCK_BYTES;

use crate::config::Retention;
use crate::error::{AppendError, CommitError};
use crate::log::{Drained, Log};
use crate::parity::{ParityWrite, Stripes};
use crate::segment::Segment;
use crate::segments::Needs;
use crate::words;

/// How long a waiter sleeps before it looks again by itself while no segment can be prepared.
const UNPREPARED_RETRY: Duration = Duration::from_millis(100);
/// The drain rate is taken over about this many bytes.
const RATE_WINDOW_BYTES: u64 = 64 << 20;

/// What waiters and leaders share.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) leading: bool,
    pub(crate) poison: Option<Arc<io::Error>>,
}

/// What only the leader touches.
pub(crate) struct Work {
    pub(crate) drain: Drain,
    /// The tail at which the last seal ended.
    pub(crate) sealed: Lsn,
    /// What parity is made of, if the log has any.
    pub(crate) stripes: Option<Stripes>,
    pub(crate) rate_bytes: u64,
    pub(crate) rate_ns: u64,
}

/// Being the leader. Given up when dropped, whatever happens; a panic on the way poisons the log.
struct Lead<'a> {
    log: &'a Log,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.log.poison(io::Error::other("a drain panicked"));
        }
        self.log.progress().leading = false;
        self.log.moved.notify_all();
    }
}

impl Log {
    /// See [`Log::commit`]. A waiter whose frames were covered by another's drain leaves; the
    /// others take the lead in turn, so each hears of a failure itself.
    pub(crate) fn commit_to(&self, upto: Lsn) -> Result<(), CommitError> {
        assert!(upto <= self.marks().tail, "only published bytes can be committed");
        loop {
            let Some(lead) = self.lead_unless(|| self.marks().durable >= upto)? else {
                return Ok(());
            };
            self.step(lead)?;
        }
    }

    /// See [`Log::drain`].
    pub(crate) fn drain_once(&self) -> Result<Drained, CommitError> {
        let lead = self.lead_unless(|| false)?.expect("nothing else ends the wait");
        self.step(lead)
    }

    /// See [`Log::wait_for_room`]. It looks while it holds the lock that every notice is given
    /// under, so no notice falls between the look and the sleep.
    pub(crate) fn wait_room(&self, payload_bytes: u64) -> Result<(), AppendError> {
        loop {
            let progress = self.progress();
            if let Some(error) = &progress.poison {
                return Err(AppendError::Poisoned(Arc::clone(error)));
            }
            match self.room(payload_bytes) {
                Ok(()) => return Ok(()),
                Err(error @ AppendError::TooLarge { .. }) => return Err(error),
                Err(_) => self.wait_or_drain(progress),
            }
        }
    }

    /// Remembers the first failure, for this process and in the region.
    pub(crate) fn poison(&self, error: io::Error) -> Arc<io::Error> {
        let mut progress = self.progress();
        let word = 1 + u64::from(error.raw_os_error().unwrap_or(0).unsigned_abs());
        let kept = progress.poison.get_or_insert_with(|| Arc::new(error));
        self.word(words::POISON).store(word, Ordering::Relaxed);
        Arc::clone(kept)
    }

    /// The word in the region is asked first: it costs a load, the error itself a lock.
    pub(crate) fn refuse_if_poisoned(&self) -> Result<(), AppendError> {
        if self.word(words::POISON).load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let error = self.progress().poison.clone();
        Err(AppendError::Poisoned(error.unwrap_or_else(|| Arc::new(io::ErrorKind::Other.into()))))
    }

    /// What waiters share, locked.
    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().expect("nothing panics with the progress")
    }

    /// Sleeps until something at or above `lsn` is durable, or until the timeout. Returns whether
    /// something is.
    pub(crate) fn wait_durable(&self, lsn: Lsn, timeout: Duration) -> bool {
        let waits =
            |progress: &mut Progress| self.marks().durable <= lsn && progress.poison.is_none();
        let progress = self.progress();
        drop(self.moved.wait_timeout_while(progress, timeout, waits));
        self.marks().durable > lsn
    }

    /// What a preparation has to know.
    pub(crate) fn needs(&self) -> Needs {
        let marks = self.marks();
        let released = match self.retention {
            Retention::InRing => marks.released,
            Retention::OnDevice => Lsn(self.word(words::MARKED).load(Ordering::Relaxed)),
        };
        Needs { released, durable: marks.durable, generation: self.generation }
    }

    /// Whether a frame could be appended now.
    pub(crate) fn room(&self, payload_bytes: u64) -> Result<(), AppendError> {
        let at = self.occupancy();
        let place = self.geometry.place(&at, payload_bytes);
        place.map(|_| ()).map_err(|refusal| self.refused(refusal, payload_bytes))
    }

    /// Waits for progress; drains itself if something is dirty and nobody does.
    fn wait_or_drain<'a>(&'a self, mut progress: MutexGuard<'a, Progress>) {
        let marks = self.marks();
        if marks.durable < marks.tail && !progress.leading {
            progress.leading = true;
            drop(progress);
            let outcome = self.step(Lead { log: self });
            if !matches!(outcome, Err(CommitError::Unprepared(_))) {
                return;
            }
            progress = self.progress();
            let waited = self.moved.wait_timeout(progress, UNPREPARED_RETRY);
            drop(waited.expect("nothing panics with the progress"));
            return;
        }
        drop(self.moved.wait(progress).expect("nothing panics with the progress"));
    }

    /// Waits until `done` (then `None`), or until this thread is the leader.
    fn lead_unless(&self, done: impl Fn() -> bool) -> Result<Option<Lead<'_>>, CommitError> {
        let mut progress = self.progress();
        loop {
            if done() {
                return Ok(None);
            }
            if let Some(error) = &progress.poison {
                return Err(CommitError::Poisoned(Arc::clone(error)));
            }
            if !progress.leading {
                progress.leading = true;
                return Ok(Some(Lead { log: self }));
            }
            progress = self.moved.wait(progress).expect("nothing panics with the progress");
        }
    }

    /// One drain: what is published now, up to the end of its span.
    fn step(&self, _lead: Lead<'_>) -> Result<Drained, CommitError> {
        let mut work = self.work.lock().expect("a leader that panics poisons the log");
        let from = work.drain.durable();
        if self.marks().tail == from {
            return Ok(Drained { bytes: 0, durable: from });
        }
        let segment = self.segment_for(from)?;
        let tail = self.seal(&mut work.sealed);
        let started_ns = self.clock.monotonic_ns();
        let event = Event::Published { tail };
        let parity = self.absorb(&mut work, from, tail);
        let outcome = self.carry_out(&mut work.drain, event, &segment, parity.as_ref());
        let durable = outcome.map_err(|error| CommitError::Poisoned(self.poison(error)))?;
        self.count(&mut work, durable.since(from), started_ns);
        self.word(words::COVERED).fetch_max(self.covered(from, durable).get(), Ordering::Relaxed);
        Ok(Drained { bytes: durable.since(from), durable })
    }

    /// The watermark that a drain put on the device: that of its seal, or, without a seal, what its
    /// span proves.
    fn covered(&self, from: Lsn, to: Lsn) -> Lsn {
        let span_bytes = self.geometry.span_bytes();
        if to.is_aligned(span_bytes) { from.align_down(span_bytes) } else { from }
    }

    /// Carries out commands until the durable mark has been advanced.
    fn carry_out(
        &self,
        drain: &mut Drain,
        event: Event,
        segment: &Segment,
        parity: Option<&ParityWrite>,
    ) -> io::Result<Lsn> {
        let mut command = drain.on(event);
        loop {
            let done = match command {
                Command::Rest => return Ok(drain.durable()),
                Command::Write { from, to } => self.write(segment, from, to),
                Command::Sync => sync(segment, parity).map(|()| Event::Synced),
                Command::Advance { durable } => {
                    self.region.set_durable(durable.get());
                    if self.retention == Retention::OnDevice {
                        self.region.release(durable.get());
                    }
                    return Ok(durable);
                }
                Command::Poison => return Err(io::ErrorKind::Other.into()),
            };
            command = match done {
                Ok(event) => drain.on(event),
                Err(error) => {
                    let _poison = drain.on(Event::Failed);
                    return Err(error);
                }
            };
        }
    }

    /// Hands what is about to be written to the parity, if there is any.
    fn absorb(&self, work: &mut Work, from: Lsn, tail: Lsn) -> Option<ParityWrite> {
        let stripes = work.stripes.as_mut()?;
        let to = tail.min(self.geometry.span_end(from));
        let pin = self.region.pin(from.get());
        stripes.absorb(from, pin.bytes(from.get(), to.since(from) as usize))
    }

    /// Writes the parity of a stripe that is not complete, of a log that is durable as a whole.
    /// Returns whether there was any to be written.
    pub(crate) fn seal_partial(&self) -> Result<bool, CommitError> {
        let mut work = self.work.lock().expect("a leader that panics poisons the log");
        let durable = work.drain.durable();
        if self.marks().tail != durable || work.drain.is_poisoned() {
            return Ok(false);
        }
        let partial = work.stripes.as_mut().and_then(Stripes::seal_partial);
        let Some(parity) = partial else { return Ok(false) };
        let segment = self.segment_for(parity.stripe)?;
        let outcome = sync(&segment, Some(&parity));
        outcome.map_err(|error| CommitError::Poisoned(self.poison(error)))?;
        Ok(true)
    }

    /// Writes once, straight from the ring. A short write counts as far as whole blocks went.
    fn write(&self, segment: &Segment, from: Lsn, to: Lsn) -> io::Result<Event> {
        let pin = self.region.pin(from.get());
        let bytes = pin.bytes(from.get(), to.since(from) as usize);
        let taken = loop {
            match segment.write(from, bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome?,
            }
        };
        let written = from.advance(taken as u64).align_down(BLOCK_BYTES);
        if written == from {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(Event::Written { to: written })
    }

    /// The segment that holds `lsn`, prepared here and now if nobody did in time.
    fn segment_for(&self, lsn: Lsn) -> Result<Segment, CommitError> {
        let number = self.geometry.segment_of(lsn);
        loop {
            if let Some(segment) = self.segments.ready(number) {
                return Ok(segment);
            }
            let prepared = self.segments.prepare_one(self.needs(), true);
            prepared.map_err(|error| CommitError::Unprepared(Arc::new(error)))?;
            self.word(words::PREPARED_LATE).fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a drain. The rate forgets by halves, so that it follows the device.
    fn count(&self, work: &mut Work, bytes: u64, started_ns: u64) {
        let elapsed_ns = self.clock.monotonic_ns().saturating_sub(started_ns);
        work.rate_bytes += bytes;
        work.rate_ns += elapsed_ns.max(1);
        let rate = u128::from(work.rate_bytes) * 1_000_000_000 / u128::from(work.rate_ns);
        self.word(words::DRAIN_RATE).store(rate as u64, Ordering::Relaxed);
        if work.rate_bytes > RATE_WINDOW_BYTES {
            work.rate_bytes /= 2;
            work.rate_ns /= 2;
        }
        self.word(words::DRAINED_BYTES).fetch_add(bytes, Ordering::Relaxed);
        self.word(words::DRAINS).fetch_add(1, Ordering::Relaxed);
        self.word(words::SYNCS).fetch_add(1, Ordering::Relaxed);
    }
}

/// Makes what was written durable, and its parity with it.
fn sync(segment: &Segment, parity: Option<&ParityWrite>) -> io::Result<()> {
    if let Some(ParityWrite { stripe, groups }) = parity {
        segment.write_groups(*stripe, groups.bytes())?;
    }
    segment.sync()
}

//! Draining: published bytes go from the ring to their segment, and waiters learn the outcome.
//!
//! Whoever needs durability and finds its bytes on nobody's way takes them, and all that is
//! published before and behind them, to the device itself: group commit, without a thread to wake
//! first. Several such **flights** may be under way (`holdfast_core::drain`), so a device that can
//! do several things at once does.
//!
//! Promise: every waiter gets its own answer; after a failed write or sync it is the same one for
//! ever; the durable mark moves only after the sync, in the order of positions.
//! Never: holds the region's lock during a write; writes from anywhere but the ring.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use holdfast_core::Lsn;
use holdfast_core::drain::Flight;
use holdfast_core::frame::BLOCK_BYTES;
use holdfast_io::errno;

use crate::append::needs::{Needs, see_marked};
use crate::append::progress::Progress;
use crate::config::Retention;
use crate::error::{AppendError, CommitError};
use crate::outcome::Drained;
use crate::segments::parity::{Complete, Stripes};
use crate::segments::segment::Segment;
use crate::state::Log;
use crate::words;

mod quiesce;

/// Why a log fails whose region another host has attached.
const STALE: &str = "stale generation: another host has attached the region";

/// How long a waiter sleeps before it looks again by itself while no segment can be prepared.
const UNPREPARED_RETRY: Duration = Duration::from_millis(100);

/// How often who gathers lets others run, at the most, and how often without a frame from them.
const GATHER_LOOKS: u32 = 40;
const STILL_LOOKS: u32 = 3;

/// A flight with what its thread needs to know. Dropped by a panic on the way, it poisons the log.
struct Airborne<'a> {
    log: &'a Log,
    flight: Flight,
    segment: Segment,
    /// The stripes that it completes.
    complete: Option<Complete>,
    /// The watermark that it brings to the device.
    covers: Lsn,
    began_ns: u64,
}

impl Drop for Airborne<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.log.poison(io::Error::other("a drain panicked"));
        }
    }
}

/// When whoever waits has waited long enough; never, if that is too far away to be told.
struct Deadline(Option<Instant>);

impl Deadline {
    fn after(patience: Duration) -> Deadline {
        Deadline(Instant::now().checked_add(patience))
    }

    fn left(&self) -> Duration {
        self.0.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()))
    }
}

impl Log {
    /// See [`Log::commit`]. Who finds its frames on the way sleeps until they have arrived.
    pub(crate) fn commit_to(&self, upto: Lsn) -> Result<(), CommitError> {
        self.check_opener().map_err(CommitError::Poisoned)?;
        assert!(upto <= self.marks().tail, "only published bytes can be committed");
        while self.marks().durable < upto {
            let mut progress = self.progress();
            progress.failure()?;
            if progress.drain.durable() >= upto {
                break;
            }
            if progress.can_fly(upto) && !progress.gathering {
                self.lead(progress, upto)?;
                continue;
            }
            let waiter = progress.waiters.add(upto);
            drop(progress);
            waiter.sleep();
        }
        Ok(())
    }

    /// Gathers, then takes off; if others took everything, those look again who slept meanwhile.
    fn lead(&self, progress: MutexGuard<'_, Progress>, upto: Lsn) -> Result<(), CommitError> {
        let progress = self.gather(progress);
        if progress.can_fly(upto) {
            return self.fly(progress).map(|_| ());
        }
        self.tell(progress);
        Ok(())
    }

    /// Lets others run for as long as they append, if that pays. Whoever wants to take off
    /// meanwhile sleeps.
    fn gather<'a>(&'a self, mut progress: MutexGuard<'a, Progress>) -> MutexGuard<'a, Progress> {
        if !progress.pays_to_gather() {
            return progress;
        }
        progress.gathering = true;
        drop(progress);
        let (mut seen, mut still) = (self.marks().tail, 0);
        for _ in 0..GATHER_LOOKS {
            std::thread::yield_now();
            let tail = self.marks().tail;
            still = if tail == seen { still + 1 } else { 0 };
            if still == STILL_LOOKS {
                break;
            }
            seen = tail;
        }
        let mut progress = self.progress();
        progress.gathering = false;
        progress
    }

    /// See [`Log::drain`].
    pub(crate) fn drain_once(&self) -> Result<Drained, CommitError> {
        loop {
            let progress = self.progress();
            progress.failure()?;
            let (durable, tail) = (progress.drain.durable(), self.marks().tail);
            if durable == tail {
                return Ok(Drained { bytes: 0, durable });
            }
            if !progress.can_fly(tail) {
                drop(self.moved.listen(progress, Duration::MAX));
            } else if let Some(drained) = self.fly(progress)? {
                return Ok(drained);
            }
        }
    }

    /// See [`Log::wait_for_room`]. It looks while it holds the lock that every notice is given
    /// under, so no notice falls between the look and the sleep.
    pub(crate) fn wait_room(
        &self,
        payload_bytes: u64,
        patience: Duration,
    ) -> Result<(), AppendError> {
        let deadline = Deadline::after(patience);
        loop {
            let progress = self.progress();
            if let Some(error) = &progress.poison {
                return Err(AppendError::Poisoned(Arc::clone(error)));
            }
            match self.room(payload_bytes) {
                Ok(()) => return Ok(()),
                Err(error @ AppendError::TooLarge { .. }) => return Err(error),
                Err(error) if deadline.left().is_zero() => return Err(error),
                Err(_) => self.listen_or_fly(progress, deadline.left()),
            }
        }
    }

    /// Remembers the first failure, for this process and in the region, and tells everybody.
    pub(crate) fn poison(&self, error: io::Error) -> Arc<io::Error> {
        let mut progress = self.progress();
        let kept = self.poison_with(&mut progress, error);
        self.tell(progress);
        kept
    }

    /// Fails for good once another host has attached the region. It is that host's, so this is
    /// remembered here alone. A child that was forked fails too, and its parent does not.
    #[inline]
    pub(crate) fn fail_if_stale(&self) -> Result<(), Arc<io::Error>> {
        if self.region.is_current() { Ok(()) } else { Err(self.give_up()) }
    }

    #[cold]
    fn give_up(&self) -> Arc<io::Error> {
        if let Err(forked) = self.check_opener() {
            return forked;
        }
        let mut progress = self.progress();
        progress.drain.fail();
        let kept = progress.poison.get_or_insert_with(|| Arc::new(io::Error::other(STALE)));
        let kept = Arc::clone(kept);
        self.tell(progress);
        kept
    }

    /// The word in the region is asked first: it costs a load, the error itself a lock.
    #[inline]
    pub(crate) fn refuse_if_poisoned(&self) -> Result<(), AppendError> {
        if self.word(words::POISON).load(Ordering::Relaxed) == 0 { Ok(()) } else { self.refuse() }
    }

    #[cold]
    fn refuse(&self) -> Result<(), AppendError> {
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
        let deadline = Deadline::after(timeout);
        if self.check_opener().is_err() {
            return self.marks().durable > lsn;
        }
        let mut progress = self.progress();
        while self.marks().durable <= lsn && progress.poison.is_none() {
            let left = deadline.left();
            if left.is_zero() {
                break;
            }
            progress = self.moved.listen(progress, left);
        }
        self.marks().durable > lsn
    }

    /// What a preparation has to know.
    pub(crate) fn needs(&self) -> Needs {
        let (marked, marks) = see_marked(self.word(words::MARKED), || self.marks());
        let released = match self.retention {
            Retention::InRing => marks.released,
            Retention::OnDevice => marked,
        };
        Needs { released, durable: marks.durable, generation: self.generation }
    }

    /// Whether a frame could be appended now.
    pub(crate) fn room(&self, payload_bytes: u64) -> Result<(), AppendError> {
        let at = self.occupancy();
        let place = self.geometry.place(&at, payload_bytes);
        place.map(|_| ()).map_err(|refusal| self.refused(refusal, payload_bytes))
    }

    /// Waits so long for progress, or makes some if something is dirty and on nobody's way.
    fn listen_or_fly(&self, progress: MutexGuard<'_, Progress>, patience: Duration) {
        if !progress.can_fly(self.marks().tail) {
            drop(self.moved.listen(progress, patience));
        } else if matches!(self.fly(progress), Err(CommitError::Unprepared(_))) {
            drop(self.moved.listen(self.progress(), UNPREPARED_RETRY));
        }
    }

    /// One flight, if one can take off; whoever finds the state changed looks again.
    fn fly(&self, progress: MutexGuard<'_, Progress>) -> Result<Option<Drained>, CommitError> {
        if !self.region.is_current() {
            drop(progress);
            return Err(CommitError::Poisoned(self.give_up()));
        }
        let number = self.geometry.segment_of(progress.drain.assigned());
        let Some(segment) = self.segments.ready(number) else {
            drop(progress);
            let prepared = self.prepare_late(number);
            if prepared.is_err() {
                self.tell(self.progress()); // The next one has to find out by itself.
            }
            return prepared.map(|()| None);
        };
        let Some(mut airborne) = self.take_off(progress, segment) else { return Ok(None) };
        let parity = airborne.complete.take();
        let outcome = parity.map_or(Ok(()), |complete| self.write_parity(&airborne, complete));
        let outcome = outcome.and_then(|()| self.write(&airborne.segment, airborne.flight));
        self.land(&airborne, outcome).map(Some)
    }

    fn take_off(
        &self,
        mut progress: MutexGuard<'_, Progress>,
        segment: Segment,
    ) -> Option<Airborne<'_>> {
        let (tail, watermark) = self.seal(&mut progress.sealed);
        let flight = progress.drain.begin(tail)?;
        let began_ns = self.clock.monotonic_ns();
        progress.rate.begin(began_ns);
        let complete = self.absorb(&mut progress, flight);
        let span_bytes = self.geometry.span_bytes();
        // Without a seal, it is what its span proves.
        let span = || flight.from.align_down(span_bytes);
        let covers = watermark.filter(|_| flight.to == tail).unwrap_or_else(span);
        Some(Airborne { log: self, flight, segment, complete, covers, began_ns })
    }

    /// Passes the outcome of a flight on to all whom it concerns.
    fn land(
        &self,
        airborne: &Airborne<'_>,
        outcome: io::Result<()>,
    ) -> Result<Drained, CommitError> {
        if !self.region.is_current() {
            return Err(CommitError::Poisoned(self.give_up()));
        }
        let mut progress = self.progress();
        if let Err(error) = outcome {
            let error = self.poison_with(&mut progress, error);
            self.tell(progress);
            return Err(CommitError::Poisoned(error));
        }
        let Flight { from, to } = airborne.flight;
        let durable = progress.drain.land(airborne.flight);
        self.region.set_durable(durable.get());
        if self.retention == Retention::OnDevice {
            self.region.release(durable.get());
        }
        self.count(&mut progress, to.since(from), airborne.began_ns);
        self.word(words::COVERED).fetch_max(airborne.covers.get(), Ordering::Relaxed);
        self.tell(progress);
        Ok(Drained { bytes: to.since(from), durable })
    }

    fn poison_with(&self, progress: &mut Progress, error: io::Error) -> Arc<io::Error> {
        progress.drain.fail();
        let word = 1 + u64::from(errno(&error).unwrap_or(0).unsigned_abs());
        let kept = progress.poison.get_or_insert_with(|| Arc::new(error));
        if self.region.is_current() {
            self.word(words::POISON).store(word, Ordering::Relaxed);
        }
        Arc::clone(kept)
    }

    /// Wakes whom the state of things concerns, the lock being free by then.
    fn tell(&self, mut progress: MutexGuard<'_, Progress>) {
        let called = progress.called();
        self.moved.tell(&progress);
        drop(progress);
        called.wake();
    }

    /// Writes from the ring, through to the device.
    fn write(&self, segment: &Segment, flight: Flight) -> io::Result<()> {
        let mut at = flight.from;
        while at < flight.to {
            at = self.write_once(segment, at, flight.to)?;
        }
        Ok(())
    }

    /// Hands what is about to be written to the parity, if there is any.
    fn absorb(&self, progress: &mut Progress, flight: Flight) -> Option<Complete> {
        let stripes = progress.stripes.as_mut()?;
        let Flight { from, to } = flight;
        let pin = self.region.pin(from.get());
        stripes.absorb(from, pin.bytes(from.get(), to.since(from) as usize))
    }

    /// Writes the parity of the stripes that a flight completes, through to the device.
    fn write_parity(&self, airborne: &Airborne<'_>, complete: Complete) -> io::Result<()> {
        let Flight { from, to } = airborne.flight;
        let pin = self.region.pin(from.get());
        let parity = complete.encode(pin.bytes(from.get(), to.since(from) as usize));
        airborne.segment.write_groups(parity.stripe, parity.groups.bytes())
    }

    /// Writes the parity of a stripe that is not complete, of a log that is durable as a whole.
    /// Returns whether there was any to be written.
    pub(crate) fn seal_partial(&self) -> Result<bool, CommitError> {
        let progress = self.progress();
        progress.failure()?;
        if progress.quiesced || self.marks().tail != progress.drain.durable() {
            return Ok(false);
        }
        self.write_partial(progress)
    }

    fn write_partial(&self, mut progress: MutexGuard<'_, Progress>) -> Result<bool, CommitError> {
        let partial = progress.stripes.as_mut().and_then(Stripes::seal_partial);
        let Some(parity) = partial else { return Ok(false) };
        let segment = self.segments.find(self.geometry.segment_of(parity.stripe));
        let Some(segment) = segment else { return Ok(false) };
        // Under the lock, so that a flight which completes the stripe writes after it.
        match segment.write_groups(parity.stripe, parity.groups.bytes()) {
            Ok(()) => Ok(true),
            Err(error) => {
                let error = self.poison_with(&mut progress, error);
                self.tell(progress);
                Err(CommitError::Poisoned(error))
            }
        }
    }

    /// Writes once, straight from the ring. A short write counts as far as whole blocks went.
    fn write_once(&self, segment: &Segment, from: Lsn, to: Lsn) -> io::Result<Lsn> {
        let pin = self.region.pin(from.get());
        let bytes = pin.bytes(from.get(), to.since(from) as usize);
        let taken = loop {
            match segment.write_through(from, bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome?,
            }
        };
        let written = from.advance(taken as u64).align_down(BLOCK_BYTES);
        if written == from {
            return Err(segment.error("writing", io::ErrorKind::WriteZero));
        }
        Ok(written)
    }

    /// Prepares a segment here and now, because nobody did in time.
    fn prepare_late(&self, number: u64) -> Result<(), CommitError> {
        let prepared = self.segments.prepare_now(|| self.needs(), number);
        self.prepared(prepared)?;
        self.word(words::PREPARED_LATE).fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// What came of a preparation, which whoever looks at the region sees too.
    pub(crate) fn prepared<T>(&self, outcome: io::Result<T>) -> Result<T, CommitError> {
        let number = |error: &io::Error| errno(error).unwrap_or(0).unsigned_abs();
        let word = outcome.as_ref().err().map_or(0, |error| 1 + u64::from(number(error)));
        self.word(words::UNPREPARED).store(word, Ordering::Relaxed);
        outcome.map_err(|error| CommitError::Unprepared(Arc::new(error)))
    }

    fn count(&self, progress: &mut Progress, bytes: u64, began_ns: u64) {
        let rate = progress.rate.end(bytes, began_ns, self.clock.monotonic_ns());
        progress.drain.set_depth(progress.rate.depth());
        self.word(words::DRAIN_RATE).store(rate, Ordering::Relaxed);
        self.word(words::DRAINED_BYTES).fetch_add(bytes, Ordering::Relaxed);
        self.word(words::DRAINS).fetch_add(1, Ordering::Relaxed);
        self.word(words::SYNCS).fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;

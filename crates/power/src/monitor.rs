//! Follows a source, again and again, and says what comes of it.
//!
//! Promise: a lease ends when what it is based on is no longer fresh, whatever becomes of this
//! thread or its process; it is taken back in the step that sees a bad sign, and before a notice
//! has been taken in, whatever the source is doing; `changed` hears of each new state, of a better
//! one before and of a worse one after the lease is written, and of what is wrong with the source.
//! Never: waits for those who hold the lease.

use std::fmt::Debug;
use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use crate::lease::{Lease, Page, now_ms};
use crate::source::{Source, Told};
use crate::state::{Known, Power, Reading, State, Terms, Why};

/// What is said of the power.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Where it stands.
    pub state: State,
    /// Why memory may not acknowledge, unless it may.
    pub why: Option<Why>,
    /// Since when it stands there, in milliseconds of [`now_ms`].
    pub since_ms: u64,
    /// The newest reading, and when it was told.
    pub told: Option<(Reading, u64)>,
    /// What is wrong with the source, in words.
    pub trouble: Option<String>,
    /// How long there is to drain in after the mains have failed, in milliseconds.
    pub usable_ms: u64,
    /// How much of that memory may rely on: no more than a drill was compared with.
    pub drain_ms: u64,
    /// How many bytes a second all devices together took in the drill; 0 without one.
    pub bytes_per_s: u64,
    /// How often the lease was taken back.
    pub taken_back: u64,
}

/// What a drill has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// How long ago, in milliseconds.
    pub ago_ms: u64,
    /// In what time it was compared, in milliseconds: how much may be in memory in a longer time is
    /// not known.
    pub drain_ms: u64,
    /// How many bytes a second all devices together took.
    pub bytes_per_s: u64,
}

impl Report {
    /// Whether it says anything that another does not: times go on.
    fn is_told_beside(&self, before: &Report) -> bool {
        let kind = |it: &Report| it.why.map(|why| mem::discriminant(&why));
        let is_new = self.state != before.state || kind(self) != kind(before);
        is_new || self.trouble.is_some() && self.trouble != before.trouble
    }
}

/// Whom the power concerns.
pub trait Concerned: Debug + Send + Sync + 'static {
    /// What the last drill has shown, if it was passed.
    fn drilled(&self) -> Option<Shown>;

    /// Whether nothing is in memory alone, of those who have heard that the lease was taken back so
    /// often.
    fn is_drained(&self, taken_back: u64) -> bool;

    /// How many share the time to drain in.
    fn sharers(&self) -> u64;

    /// The power stands elsewhere than before, or for another reason.
    fn changed(&self, report: &Report);
}

/// A source that is followed.
#[derive(Debug)]
pub struct Monitor {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    page: Page,
    terms: Terms,
    concerned: Arc<dyn Concerned>,
    /// Held for the whole of a step, so that no lease is written over a newer one.
    stepping: Mutex<()>,
    seen: Mutex<Seen>,
    woken: Condvar,
}

/// What changes.
#[derive(Debug)]
struct Seen {
    power: Power,
    report: Report,
    told: Option<Told>,
    trouble: Option<String>,
    is_drilling: bool,
    noticed_ms: Option<u64>,
}

impl Seen {
    fn take_in(&mut self, answer: Result<Option<Told>, String>) {
        let (told, trouble) = match answer {
            Ok(told) => (told, None),
            Err(trouble) => (None, Some(trouble)),
        };
        self.told = told.or(self.told);
        self.trouble = trouble;
    }
}

impl Monitor {
    /// Follows a source on a thread of its own, once in `every`, until the process ends.
    ///
    /// # Errors
    /// The machine has no memory, descriptor or thread for it.
    pub fn start(
        source: Source,
        terms: Terms,
        every: Duration,
        concerned: Arc<dyn Concerned>,
    ) -> io::Result<Monitor> {
        let power = Power::default();
        let report = Report {
            state: power.state(),
            why: power.why(),
            since_ms: now_ms(),
            told: None,
            trouble: None,
            usable_ms: 0,
            drain_ms: 0,
            bytes_per_s: 0,
            taken_back: 0,
        };
        let seen = Mutex::new(Seen {
            power,
            report,
            told: None,
            trouble: None,
            is_drilling: false,
            noticed_ms: None,
        });
        let (page, stepping, woken) = (Page::new()?, Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { page, terms, concerned, stepping, seen, woken });
        let followed = shared.clone();
        let follow = move || followed.follow(source, every);
        Builder::new().name("power".into()).spawn(follow)?;
        Ok(Monitor { shared })
    }

    /// What other processes read the lease from.
    #[must_use]
    pub fn page(&self) -> &Page {
        &self.shared.page
    }

    /// What is known now.
    #[must_use]
    pub fn report(&self) -> Report {
        self.shared.lock().report.clone()
    }

    /// The power is about to fail, says whoever does not wait to be asked. When this returns,
    /// memory may not acknowledge; it may again when the source has told of the mains after it for
    /// as long as all has to be well.
    pub fn notice(&self) {
        self.shared.lock().noticed_ms = Some(now_ms());
        self.shared.step();
    }

    /// Memory may not acknowledge from the next step on, or may again.
    pub fn drill(&self, goes_on: bool) {
        self.shared.lock().is_drilling = goes_on;
        self.shared.woken.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, mut source: Source, every: Duration) {
        loop {
            let answer = source.ask();
            self.lock().take_in(answer);
            self.step();
            let seen = self.lock();
            let is_drilling = seen.is_drilling;
            let waits = |seen: &mut Seen| seen.is_drilling == is_drilling;
            drop(self.woken.wait_timeout_while(seen, every, waits));
        }
    }

    /// Takes in what is known by now.
    fn step(&self) {
        let _whole = self.stepping.lock().unwrap_or_else(PoisonError::into_inner);
        let concerned = &*self.concerned;
        let mut seen = self.lock();
        let before = seen.report.clone();
        let (now_ms, drilled) = (now_ms(), concerned.drilled());
        let known = Known {
            now_ms,
            told: seen.told,
            noticed_ms: seen.noticed_ms,
            drilled_ms_ago: drilled.map(|it| it.ago_ms),
            is_drilling: seen.is_drilling,
            // Nobody asks before the mains fail, and until this step memory may have acknowledged,
            // whatever was given up before it began.
            is_drained: before.state.is_emergency() && concerned.is_drained(before.taken_back),
        };
        seen.power.step(&known, &self.terms);
        let (state, why) = (seen.power.state(), seen.power.why());
        let is_taken_back = before.state == State::Armed && state != State::Armed;
        let reading = seen.told.map(|(reading, _)| reading);
        let usable_ms = reading.and_then(|it| self.terms.drain_ms(&it)).unwrap_or(0);
        seen.report = Report {
            state,
            why,
            since_ms: if state == before.state { before.since_ms } else { now_ms },
            told: seen.told,
            trouble: seen.trouble.clone(),
            usable_ms,
            drain_ms: drilled.map_or(0, |it| it.drain_ms.min(usable_ms)),
            bytes_per_s: drilled.map_or(0, |it| it.bytes_per_s),
            taken_back: before.taken_back + u64::from(is_taken_back),
        };
        let report = seen.report.clone();
        let sharers = concerned.sharers();
        let lease = Lease { sharers, ..self.lease(&report, &known) };
        drop(seen);
        let is_told = report.is_told_beside(&before);
        if state == State::Armed && is_told {
            concerned.changed(&report);
        }
        // A lease that cannot be taken back ends by itself.
        if let Err(error) = self.page.write(&lease) {
            tracing::error!(%error, "the lease of memory stays as it is until it ends");
        }
        if state != State::Armed && is_told {
            concerned.changed(&report);
        }
    }

    /// What follows from a report. A lease lasts as long as what it is based on.
    fn lease(&self, report: &Report, known: &Known) -> Lease {
        let fails = matches!(report.state, State::OnBattery | State::Draining);
        let is_hurried = fails && !known.is_drained;
        let told_ms = report.told.filter(|_| report.state == State::Armed).map(|(_, at_ms)| at_ms);
        Lease {
            until_ms: told_ms.map_or(0, |at_ms| at_ms + self.terms.fresh_ms),
            taken_back: report.taken_back,
            drain_ms: report.drain_ms,
            bytes_per_s_max: report.bytes_per_s,
            hurried_until_ms: if is_hurried { known.now_ms + self.terms.fresh_ms } else { 0 },
            ..Lease::default()
        }
    }
}

#[cfg(test)]
mod tests;

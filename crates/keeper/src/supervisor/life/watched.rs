//! What is known of a line of processes, for whoever waits for it.
//!
//! Promise: whoever waits for a change hears of each; what a process does not say itself, that it
//! gives no sign of life or does not answer, is told with what it does instead; the memory that it
//! serves is held.
//! Never: starts a process.

use super::known::{Known, State};
use crate::memory::{Astray, Memories};
use crate::pulse::Pulse;
use crate::supervisor::signs::{new_pulse, silence, tell_astray, unanswered};
use crate::supervisor::stall::Stall;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::holders::Holder;
use holdfast_machine::standstill::Standstill;
use holdfast_memory::Medium;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often is looked whether a process lives.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What is known, and a bell that rings when it changes.
#[derive(Debug)]
pub(crate) struct Watched<T> {
    /// Who serves, for people.
    who: &'static str,
    known: Mutex<Known<T>>,
    changed: Condvar,
    /// Signs of life of whichever process there is.
    pub(crate) pulse: Pulse,
    /// Since when there is none, while programs wait.
    pub(crate) stall: Stall,
    /// All that the keeper holds, and what of it is served here, by service.
    pub(crate) memories: Arc<Memories>,
    pub(crate) media: BTreeMap<String, Medium>,
}

impl<T: Clone> Watched<T> {
    /// Of processes of which none has been started; `who` they are, and `whose`, for people.
    pub(crate) fn new(
        (who, whose): (&'static str, &str),
        of: T,
        memories: Arc<Memories>,
        media: BTreeMap<String, Medium>,
    ) -> Outcome<Watched<T>> {
        let (known, changed) = (Mutex::new(Known::new(of)), Condvar::new());
        let (pulse, stall) = (new_pulse(whose)?, Stall::default());
        Ok(Watched { who, known, changed, pulse, stall, memories, media })
    }

    /// What was last noted.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Known<T>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes something, and rings.
    pub(crate) fn change(&self, with: impl FnOnce(&mut Known<T>)) {
        with(&mut self.lock());
        self.changed.notify_all();
    }

    /// All that is known now.
    pub(crate) fn known(&self) -> Known<T> {
        let mut known = self.lock().clone();
        known.longest_stall = known.longest_stall.max(self.stall.so_far());
        let standing = self.standstills(known.pid);
        known.standstills.splice(0..0, standing);
        known
    }

    /// Waits as long as that is so, or until `patience` is over; returns what was noted by then.
    pub(crate) fn wait_while(
        &self,
        patience: Duration,
        waits: impl Fn(&Known<T>) -> bool,
    ) -> Known<T> {
        let known = self.lock();
        let waited = self.changed.wait_timeout_while(known, patience, |it| waits(it));
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// That the process gives no sign of life, or does not answer, if that is so.
    fn standstills(&self, pid: Option<u32>) -> impl Iterator<Item = Standstill> {
        let silence = silence(&self.pulse, pid, self.who);
        silence.into_iter().chain(unanswered(&self.pulse, pid, self.who))
    }

    /// What the process itself does not move, to be told once. One that serves and gives no sign
    /// of life is none for as long.
    pub(crate) fn look(&self) -> Vec<Standstill> {
        let pid = self.lock().pid;
        let stall = self.pulse.silence().filter(|_| pid.is_some()).unwrap_or_default();
        self.change(|s| {
            if s.state == State::Serving {
                s.longest_stall = s.longest_stall.max(stall);
            }
        });
        self.standstills(pid).collect()
    }

    /// Signals the process; it may be gone.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.lock().pid.and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let _ = pid.map(|pid| kill_process(pid, signal));
    }

    /// Holds what this process has begun to serve; false if it found other memory than what is
    /// held, which it must not serve.
    #[must_use]
    pub(crate) fn hold(&self, pid: u32) -> bool {
        self.media.values().filter(|medium| !self.memories.hold(medium, pid)).count() == 0
    }

    /// The services whose memory has lost its name, and how.
    pub(crate) fn astray(&self) -> BTreeMap<String, Astray> {
        let astray = |(of, it): (&String, &Medium)| Some((of.clone(), self.memories.astray(it)?));
        self.media.iter().filter_map(astray).collect()
    }

    /// Says once which memory has lost its name since, and once that it has it again.
    pub(crate) fn tell_astray(&self, was: &mut BTreeMap<String, Astray>) {
        let now = self.astray();
        for service in self.media.keys() {
            let why = now.get(service).map(|it| it.why.as_str());
            tell_astray(service, why, was.contains_key(service));
        }
        *was = now;
    }

    /// Why a process did not come to serve: see [`Memories::reason`].
    pub(crate) fn reason(&self, said: Problem) -> Problem {
        self.media.values().fold(said, |said, medium| self.memories.reason(medium, said))
    }

    /// The first service that is served and whose memory no next process would find. What is left
    /// out as it is does not keep the others from anything.
    pub(crate) fn hindered(&self) -> Option<(&String, Holder)> {
        let mut served = self.media.iter().filter(|(_, medium)| self.memories.is_served(medium));
        served.find_map(|(of, medium)| Some((of, self.memories.hindrance(medium)?)))
    }

    /// What keeps the memory of a service from having its name, if anything does.
    pub(crate) fn hindrance(&self, service: &str) -> Option<Holder> {
        self.memories.hindrance(self.media.get(service)?)
    }
}

//! The life of what is served by one process after the other: front ends, or servers.
//!
//! Promise: a process that ended is followed by another, of the binary that is meant by then, for
//! as long as that is of use; one that was to replace another and does not come up is followed by
//! one of the old binary; whoever asked hears of that. What is known of it says so throughout.
//! Never: starts, ends or signals a process; that is for those who know what it serves.

pub(crate) mod known;
pub(crate) mod process;
pub(crate) mod watched;

use self::known::{Known, State};
use self::watched::Watched;
use crate::supervisor::restart::{Death, Deaths, Decision, until_it_passes};
use crate::supervisor::upgrade::{Request, Upgrade};
use holdfast_config::problem::Problem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What all kinds of processes have in common, from one to the next.
pub(crate) struct Life<T> {
    /// What is replaced by an upgrade, for people.
    whose: String,
    /// What processes are started from.
    binary: OwnedFd,
    deaths: Deaths,
    upgrade: Option<Upgrade>,
    /// The process was told to end so that the next one takes up more.
    is_renewing: bool,
    watched: Arc<Watched<T>>,
}

impl<T: Clone> Life<T> {
    /// Before the first process.
    pub(crate) fn new(whose: String, binary: OwnedFd, watched: Arc<Watched<T>>) -> Life<T> {
        let deaths = Deaths::default();
        Life { whose, binary, deaths, upgrade: None, is_renewing: false, watched }
    }

    /// What the next process is started from.
    pub(crate) fn binary(&self) -> BorrowedFd<'_> {
        self.binary.as_fd()
    }

    /// Somebody asked for another start: what happened before does not count.
    pub(crate) fn begin_anew(&mut self) {
        self.deaths = Deaths::default();
    }

    /// Whether another process is to take the place of this one, or has just begun to.
    pub(crate) fn is_changing(&self) -> bool {
        self.is_renewing || self.is_upgrading()
    }

    /// Whether that is so because somebody asked for it.
    pub(crate) fn is_upgrading(&self) -> bool {
        self.upgrade.is_some()
    }

    /// The process was told to end, for another one of the same binary.
    pub(crate) fn renew(&mut self) {
        self.is_renewing = true;
        self.watched.stall.begin();
        self.watched.change(|s| s.state = State::Restarting);
    }

    /// From now on processes are of another binary.
    pub(crate) fn upgrade(&mut self, request: Request) {
        self.upgrade = Some(Upgrade::begin(request, &mut self.binary));
        self.begin_anew();
    }

    /// It is not a moment for trying something new; whoever asked hears that no answer will come.
    pub(crate) fn forget_upgrade(&mut self) {
        self.upgrade = None;
    }

    /// Whether the process that runs is the one that an upgrade waits for the end of.
    pub(crate) fn waits_for_the_old(&self) -> bool {
        self.upgrade.as_ref().is_some_and(Upgrade::waits_for_the_old)
    }

    /// A process was started.
    pub(crate) fn started(&mut self, pid: u32) {
        self.upgrade.iter_mut().for_each(Upgrade::started);
        self.watched.change(|s| s.pid = Some(pid));
    }

    /// When an upgrade has had time enough.
    pub(crate) fn ready_until(&self) -> Option<Instant> {
        self.upgrade.as_ref().and_then(Upgrade::ready_until)
    }

    /// True, once, when that moment has come.
    pub(crate) fn is_late(&mut self, now: Instant) -> bool {
        self.upgrade.as_mut().is_some_and(|upgrade| upgrade.is_late(now))
    }

    /// The newest process serves; `note` is what only this kind says of that. Returns how long
    /// programs have waited.
    pub(crate) fn serves(&mut self, note: impl FnOnce(&mut Known<T>)) -> Duration {
        let (stall, upgrade) = (self.watched.stall.end(), self.upgrade.take());
        self.watched.change(|s| {
            s.state = State::Serving;
            s.problem = None;
            s.upgrades += u64::from(upgrade.is_some());
            s.longest_stall = s.longest_stall.max(stall);
            note(s);
        });
        upgrade.into_iter().for_each(Upgrade::succeeded);
        stall
    }

    /// Whether the process that has ended was told to for the sake of the next one.
    pub(crate) fn was_replaced(&mut self) -> bool {
        std::mem::take(&mut self.is_renewing) || self.waits_for_the_old()
    }

    /// Whether the process that has ended was to replace another one: then the next one is of the
    /// old binary, and whoever asked hears why.
    pub(crate) fn hands_back(&mut self, why: &Problem) -> bool {
        let Some(upgrade) = self.upgrade.take() else { return false };
        upgrade.failed(&self.whose, &why.why, &mut self.binary);
        self.begin_anew();
        true
    }

    /// When the next process starts after this death; the problem, if that is of no use. Programs
    /// wait for it if `is_awaited`.
    pub(crate) fn after(
        &mut self,
        death: Death,
        problem: Problem,
        is_awaited: bool,
    ) -> Result<Instant, Problem> {
        let Decision::StartAfter(pause) = self.deaths.after(death, &problem) else {
            return Err(problem);
        };
        self.watched.change(|s| {
            s.restarts += u64::from(!problem.passes);
            s.last_error = Some(problem.why.clone());
            s.problem = problem.passes.then(|| until_it_passes(problem));
            if is_awaited {
                s.state = State::Restarting;
            }
        });
        Ok(Instant::now() + pause)
    }

    /// That what processes die of comes again and again: see [`Deaths::recurrence`].
    pub(crate) fn recurrence(&self, whose: &str, lived: Duration) -> Option<Problem> {
        self.deaths.recurrence(whose, lived)
    }
}

#[cfg(test)]
mod tests;

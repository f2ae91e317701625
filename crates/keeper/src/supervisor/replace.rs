//! Replacing a front end that serves.
//!
//! Promise: the old one finishes what it took and leaves its connections to the new one; if the new
//! one does not come up, the old one is started again, and finds them too.
//! Never: gives up on a volume; deaths are counted elsewhere.

use super::snapshot::State;
use super::state::{Front, Phase, Supervisor};
use super::words::front_end_of;
use crate::orders::Task;
use crate::restart::Deaths;
use crate::upgrade::{END_PATIENCE, Request, Upgrade};
use holdfast_config::problem::Problem;
use rustix::process::Signal;
use std::time::Instant;

impl Supervisor {
    pub(super) fn begin_upgrade(&mut self, request: Request, phase: Phase) -> Phase {
        let is_over = self.is_unmounted || matches!(phase, Phase::Over);
        if self.upgrade.is_some() || is_over {
            return phase; // whoever asked hears that the answer will not come
        }
        self.upgrade = Some(Upgrade::begin(request, &mut self.binary));
        self.deaths = Deaths::default();
        match phase {
            Phase::Running(front) if front.task == Task::Serve => {
                if self.was_ever_ready {
                    self.shared.stall.begin();
                }
                self.signal(Signal::TERM);
                let kill_at = Some(Instant::now() + END_PATIENCE);
                Phase::Running(Front { kill_at, ..front })
            }
            // The region has one user at a time.
            Phase::Running(front) => {
                self.is_wanted_again = true;
                Phase::Running(front)
            }
            _ => self.begin_successor(),
        }
    }

    /// The old one has ended, if there was one.
    pub(super) fn begin_successor(&mut self) -> Phase {
        match self.is_unmounted {
            // It is not a moment for trying something new.
            true => self.upgrade = None,
            false => self.shared.change(|s| s.state = State::Restarting),
        }
        self.begin(self.task())
    }

    /// The new one did not come up.
    pub(super) fn hand_back(&mut self, upgrade: Upgrade, problem: &Problem) -> Phase {
        upgrade.failed(&front_end_of(&self.orders.whose()), &problem.why, &mut self.binary);
        self.deaths = Deaths::default();
        self.begin(self.task())
    }

    /// When a front end that runs has had time enough.
    pub(super) fn front_is_due(&self, front: &Front) -> Option<Instant> {
        let ready_until = self.upgrade.as_ref().and_then(Upgrade::ready_until);
        [front.kill_at, ready_until].into_iter().flatten().min()
    }

    /// Ends a front end that took too long to end, or to serve.
    pub(super) fn kill_if_late(&mut self, mut front: Front) -> Front {
        let now = Instant::now();
        let is_late = self.upgrade.as_mut().is_some_and(|upgrade| upgrade.is_late(now));
        if front.kill_at.take_if(|at| *at <= now).is_some() || is_late {
            self.signal(Signal::KILL);
        }
        front
    }
}

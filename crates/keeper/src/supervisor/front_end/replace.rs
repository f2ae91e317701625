//! Replacing a front end that serves.
//!
//! Promise: the old one finishes what it took and leaves its connections to the new one; if the new
//! one does not come up, the old one is started again, and finds them too.
//! Never: gives up on a volume; deaths are counted elsewhere.

use super::state::{Front, Phase, Supervisor};
use crate::orders::Task;
use crate::supervisor::life::known::State;
use crate::supervisor::upgrade::{END_PATIENCE, Request};
use rustix::process::Signal;
use std::time::Instant;

impl Supervisor {
    pub(super) fn begin_upgrade(&mut self, request: Request, phase: Phase) -> Phase {
        let is_over = self.is_unmounted || matches!(phase, Phase::Over);
        if self.life.is_upgrading() || is_over {
            return phase; // whoever asked hears that the answer will not come
        }
        self.life.upgrade(request);
        match phase {
            Phase::Running(mut front) if front.task == Task::Serve => {
                if self.was_ever_ready {
                    self.watched.stall.begin();
                }
                self.watched.signal(Signal::TERM);
                front.process.is_to_end_within(END_PATIENCE);
                Phase::Running(front)
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
            true => self.life.forget_upgrade(),
            false => self.watched.change(|s| s.state = State::Restarting),
        }
        self.begin(self.task())
    }

    /// When a front end that runs has had time enough.
    pub(super) fn front_is_due(&self, front: &Front) -> Option<Instant> {
        [front.process.kill_at(), self.life.ready_until()].into_iter().flatten().min()
    }

    /// Ends a front end that took too long to end, or to serve.
    pub(super) fn kill_if_late(&mut self, mut front: Front) -> Front {
        let now = Instant::now();
        let is_late = self.life.is_late(now);
        if front.process.is_late(now) || is_late {
            self.watched.signal(Signal::KILL);
        }
        front
    }
}

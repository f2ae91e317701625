//! Sockets of a volume or disk whose names are taken away.
//!
//! Promise: a socket that has lost its name while a front end serves has it again by itself, and
//! clients that are connected notice nothing; where that cannot be, status says why.
//! Never: ends a front end whose memory the next one would not find, or whose connections would end
//! with it.

use super::snapshot::State;
use super::state::{Front, Supervisor};
use super::words::start_again;
use crate::orders::Task;
use crate::taken;
use crate::upgrade::END_PATIENCE;
use holdfast_config::Address;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use rustix::process::Signal;
use std::path::Path;
use std::time::Instant;

impl Supervisor {
    /// Has the next front end take clients where a socket has lost its name, if nobody else has it.
    pub(super) fn look_at_sockets(&mut self, front: Front) -> Front {
        if !self.may_renew(&front) {
            return front;
        }
        let mended = self.may_mend().and_then(|()| self.mend_sockets());
        let recurs = || self.deaths.recurrence(&self.orders.whose(), front.started.elapsed());
        self.tell_trouble(mended.as_ref().err().cloned().or_else(recurs));
        match mended {
            Ok(true) => self.renew(front),
            _ => front,
        }
    }

    /// Whether it serves, and nothing ends it already.
    pub(super) fn may_renew(&self, front: &Front) -> bool {
        let is_ending = self.is_unmounted || self.upgrade.is_some() || front.kill_at.is_some();
        !is_ending && front.was_ready && front.task == Task::Serve
    }

    /// Refuses where the front end that has to be replaced then has to stay.
    fn may_mend(&self) -> Outcome<()> {
        let unfound = self.held.listeners.unfound();
        let Some(at) = unfound.first() else { return Ok(()) };
        if let Some((why, remedy)) = self.shared.memories.hindrance(&self.shared.medium) {
            return Err(self.unfound(at, &why, &remedy));
        }
        match self.shared.pulse.mortal_connections() {
            0 => Ok(()),
            count => {
                let why = format!("{count} connections that speak TLS would end with that");
                let again = match self.orders.volume {
                    Some(_) => format!("holdfast upgrade volume {}", self.orders.name),
                    None => start_again(&self.orders),
                };
                let remedy = format!("wait for their end, or `{again}`, which is theirs");
                Err(self.unfound(at, &why, &remedy))
            }
        }
    }

    /// Listens anew wherever a socket has lost its name; true if so. A front end that is started
    /// from now on takes clients there.
    pub(super) fn mend_sockets(&mut self) -> Outcome<bool> {
        let unfound = self.held.listeners.unfound();
        let Some(at) = unfound.first().map(|at| at.to_path_buf()) else { return Ok(false) };
        let whose = self.orders.whose();
        let (places, outcome) = self.held.listeners.mend();
        if !places.is_empty() {
            tracing::warn!("a socket of {whose} was taken away, and is there again");
        }
        if let Some(kept) = &self.held.kept {
            kept.keep_anew(&whose, &self.held.listeners, &places);
        }
        match outcome {
            Err(error) if places.is_empty() => {
                let remedy = "move away what is there, and it is made by itself";
                let why = taken::why(&Address::Unix(at.clone()), &error);
                Err(self.unfound(&at, &why, remedy))
            }
            _ => Ok(!places.is_empty()),
        }
    }

    fn unfound(&self, at: &Path, why: &dyn std::fmt::Display, remedy: &str) -> Problem {
        let (whose, at) = (self.orders.whose(), at.display());
        let what = format!("listening for clients of {whose} at {at}, which was taken away, again");
        Problem::new(Exit::Failed, what, why, remedy)
    }

    fn tell_trouble(&self, problem: Option<Problem>) {
        let is_news = self.shared.lock().problem != problem;
        problem.iter().filter(|_| is_news).for_each(|problem| tracing::error!("{problem}"));
        self.shared.change(|s| s.problem = problem);
    }

    /// Has another front end serve, to which this one leaves its connections.
    pub(super) fn renew(&mut self, front: Front) -> Front {
        self.is_renewing = true;
        self.shared.stall.begin();
        self.shared.change(|s| s.state = State::Restarting);
        self.signal(Signal::TERM);
        Front { kill_at: Some(Instant::now() + END_PATIENCE), ..front }
    }
}

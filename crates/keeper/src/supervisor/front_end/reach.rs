//! Sockets of a volume or disk whose names are taken away.
//!
//! Promise: a socket that has lost its name while a front end serves has it again by itself, and
//! clients that are connected notice nothing; where that cannot be, status says why.
//! Never: ends a front end whose memory the next one would not find, or whose connections would end
//! with it.

use super::state::{Front, Supervisor};
use super::words::start_again;
use crate::orders::Task;
use crate::supervisor::upgrade::END_PATIENCE;
use crate::taken;
use holdfast_config::Address;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use rustix::process::Signal;
use std::path::Path;

impl Supervisor {
    /// Has the next front end take clients where a socket has lost its name, if nobody else has it.
    pub(super) fn look_at_sockets(&mut self, front: Front) -> Front {
        if !self.may_renew(&front) {
            return front;
        }
        let mended = self.may_mend().and_then(|()| self.mend_sockets());
        let recurs = || self.life.recurrence(&self.orders.whose(), front.process.lived());
        self.tell_trouble(mended.as_ref().err().cloned().or_else(recurs));
        match mended {
            Ok(true) => self.renew(front),
            _ => front,
        }
    }

    /// Whether it serves, and nothing ends it already.
    pub(super) fn may_renew(&self, front: &Front) -> bool {
        let is_ending = self.is_unmounted || self.life.is_upgrading();
        !is_ending && front.process.goes_on() && front.task == Task::Serve
    }

    /// Refuses where the front end that has to be replaced then has to stay.
    fn may_mend(&self) -> Outcome<()> {
        let unfound = self.held.listeners.unfound();
        let Some(at) = unfound.first() else { return Ok(()) };
        if let Some((why, remedy)) = self.watched.hindrance(&self.orders.whose()) {
            return Err(self.unfound(at, &why, &remedy));
        }
        match self.watched.pulse.mortal_connections() {
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
        let is_news = self.watched.lock().problem != problem;
        problem.iter().filter(|_| is_news).for_each(|problem| tracing::error!("{problem}"));
        self.watched.change(|s| s.problem = problem);
    }

    /// Has another front end serve, to which this one leaves its connections.
    pub(super) fn renew(&mut self, mut front: Front) -> Front {
        self.life.renew();
        self.watched.signal(Signal::TERM);
        front.process.is_to_end_within(END_PATIENCE);
        front
    }
}

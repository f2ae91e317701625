//! What the server is to serve and somebody else has.
//!
//! Promise: what could not be taken up because somebody had it, or because it was not made yet, is
//! looked at for as long as the keeper runs, and taken up by the next server once nobody has it and
//! it is there; until then is told who has it now, and nobody who is gone. The next server waits
//! for nothing that is not free.
//! Never: ends a server for what is not free; nor, for what is free and still cannot be taken up,
//! more often than [`SELDOM`].

use super::state::{Held, Running, Supervisor};
use crate::orders::ServerOrders;
use crate::supervisor::life::known::State;
use crate::supervisor::pace::{Pace, SELDOM};
use crate::supervisor::upgrade::END_PATIENCE;
use holdfast_attach::made::is_made;
use holdfast_client::protocol::{DISK_PREFIX, SNAPSHOT_PREFIX, TABLE_PREFIX};
use holdfast_config::exit::Exit;
use holdfast_config::problem::Problem;
use holdfast_machine::holders::{Holder, holder, is_locked, locked_by};
use holdfast_machine::lock::holder_of_directory;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::time::Instant;

/// What is added to what ends somebody's use.
const THEN: &str = "it is taken up as soon as nobody has it";

impl Supervisor {
    /// The services that somebody else has, or had when they were to be taken up. A server that was
    /// given up may have been for any of them.
    fn awaited(&self) -> Vec<String> {
        let seen = self.watched.lock();
        let is_passing = |problem: &Problem| problem.exit == Exit::InUse;
        match (seen.state, &seen.problem) {
            (State::GivenUp, Some(problem)) if is_passing(problem) => self.held.services(),
            (State::Serving, _) => {
                let unserved = seen.of.ready.iter().flat_map(|ready| &ready.unserved);
                let unserved = unserved
                    .filter(|(of, problem)| is_passing(problem) || self.held.is_made_by_now(of));
                unserved.map(|(service, _)| service.clone()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether there is something to be looked at.
    pub(super) fn awaits(&self) -> bool {
        !self.awaited().is_empty()
    }

    /// Looks who has what could not be taken up, and has it taken up when nobody has.
    pub(super) fn look_at_awaited(&mut self) {
        if !self.may_renew() {
            return;
        }
        let services = self.awaited();
        let (mut free, now) = (BTreeSet::new(), Instant::now());
        for service in &services {
            let hindrance = self.watched.hindrance(service);
            let who = hindrance.or_else(|| self.held.holder_of(service));
            self.tell_holder(service, who.as_ref());
            free.extend(who.is_none().then(|| service.clone()));
        }
        // Whoever ends lets go of one thing after the other.
        let is_settled = free == self.awaited.free;
        self.awaited.services = services;
        if !is_settled {
            (self.awaited.free, self.awaited.pace) = (free, Pace::default());
            return;
        }
        let is_due = !self.awaited.free.is_empty() && self.awaited.pace.is_due(now);
        if is_due && self.watched.hindered().is_none() && !self.has_store_trouble() {
            self.awaited.pace.attempt(now, SELDOM);
            tracing::info!(services = ?self.awaited.free, "nobody else has them any more");
            self.renew();
        }
    }

    /// Whether nothing else is on its way already.
    pub(super) fn may_renew(&self) -> bool {
        let is_changing = self.life.is_changing() || self.due.is_some();
        let goes_on = |it: &Running| it.process.goes_on();
        !is_changing && !self.is_stopping && self.running.as_ref().is_none_or(goes_on)
    }

    /// Has another server take up what this one does not have. Clients only wait.
    pub(super) fn renew(&mut self) {
        match self.running {
            Some(_) => {
                self.life.renew();
                self.end(Signal::TERM, END_PATIENCE);
            }
            None => self.begin_successor(),
        }
    }

    fn tell_holder(&self, service: &str, who: Option<&Holder>) {
        self.watched.change(|seen| {
            let given_up = seen.problem.as_mut().filter(|_| seen.state == State::GivenUp);
            let unserved = seen.of.ready.iter_mut().flat_map(|ready| &mut ready.unserved);
            let unserved = unserved.filter(|(of, _)| of == service).map(|(_, problem)| problem);
            given_up.into_iter().chain(unserved).for_each(|problem| tell(problem, who));
        });
    }

    /// What a server is told to serve: all but what somebody is known to have, which would keep it
    /// waiting. That is left out.
    pub(super) fn orders_of_free(&mut self) -> ServerOrders {
        let services = self.awaited.services.iter();
        let held = services.filter_map(|it| Some((it, self.held.holder_of(it)?)));
        self.left_out.extend(held.map(|(it, who)| (it.clone(), left_out(it, &who))));
        let is_free = |service: &str| self.left_out.iter().all(|(of, _)| of != service);
        let is_left = |prefix: &str, name: &str| is_free(&format!("{prefix}{name}"));
        let mut orders = self.held.orders.clone();
        orders.logs.retain(|it| is_free(&it.service));
        orders.disks.retain(|it| is_left(DISK_PREFIX, &it.name));
        orders.tables.retain(|(name, _)| is_left(TABLE_PREFIX, name));
        orders.snapshots.retain(|(name, _)| is_left(SNAPSHOT_PREFIX, name));
        orders
    }

    /// Why something is not served that will be once nobody else has it, if anything is.
    pub(super) fn passing_reason(&self) -> Option<Problem> {
        let untaken = self.held.unserved.iter().map(|it| &it.why);
        let mut reasons = self.left_out.iter().map(|(_, why)| why).chain(untaken);
        reasons.find(|why| why.exit == Exit::InUse).cloned()
    }
}

impl Held {
    /// Whether a log that was not there to be taken has been made since.
    fn is_made_by_now(&self, service: &str) -> bool {
        let untaken = self.unserved.iter().find(|it| it.service == service);
        untaken.is_some_and(|it| it.why.exit == Exit::Usage && is_made(&it.log.log))
    }

    /// Everything that is to be served.
    fn services(&self) -> Vec<String> {
        let ServerOrders { logs, disks, tables, snapshots, .. } = &self.orders;
        let untaken = self.unserved.iter().map(|it| it.service.clone());
        let logs = logs.iter().map(|it| it.service.clone());
        let disks = disks.iter().map(|it| format!("{DISK_PREFIX}{}", it.name));
        let tables = tables.iter().map(|(name, _)| format!("{TABLE_PREFIX}{name}"));
        let snapshots = snapshots.iter().map(|(name, _)| format!("{SNAPSHOT_PREFIX}{name}"));
        untaken.chain(logs).chain(disks).chain(tables).chain(snapshots).collect()
    }

    /// Who has a part of what a service needs, if anybody does.
    fn holder_of(&self, service: &str) -> Option<Holder> {
        let ServerOrders { logs, disks, tables, snapshots, .. } = &self.orders;
        let name = service.split_once('/').map_or(service, |(_, name)| name);
        let is_it = |prefix: &str| service.starts_with(prefix);
        if let Some(it) = self.unserved.iter().find(|it| it.service == service) {
            let of_directory = holder_of_directory(&it.log.log);
            return of_directory.or_else(|| holder(&it.log.memory.medium()));
        }
        if let Some(it) = logs.iter().find(|it| it.service == service) {
            return holder(&it.log.memory.medium());
        }
        if let Some(it) = disks.iter().find(|it| is_it(DISK_PREFIX) && it.name == name) {
            return holder(&it.disk.medium());
        }
        if let Some((_, it)) = tables.iter().find(|(of, _)| is_it(TABLE_PREFIX) && of == name) {
            return holder(&it.memory.medium()).or_else(|| holder_of_store(&it.store));
        }
        let snapshot = snapshots.iter().find(|(of, _)| is_it(SNAPSHOT_PREFIX) && of == name);
        snapshot.and_then(|(_, it)| holder(&it.store().medium()))
    }
}

/// Whether there is nothing to be served.
pub(super) fn are_empty(orders: &ServerOrders) -> bool {
    let ServerOrders { logs, disks, tables, snapshots, .. } = orders;
    logs.is_empty() && disks.is_empty() && tables.is_empty() && snapshots.is_empty()
}

fn holder_of_store(store: &Path) -> Option<Holder> {
    let directory = File::open(store).ok()?;
    is_locked(&directory).then(|| locked_by(&directory, store))
}

fn left_out(service: &str, (why, remedy): &Holder) -> Problem {
    let what = format!("taking up {}", service.replacen('/', " ", 1));
    Problem::new(Exit::InUse, what, why, format!("{remedy}: {THEN}"))
}

/// Who has it now. What is known otherwise of something that nobody has is left as it is.
fn tell(problem: &mut Problem, who: Option<&Holder>) {
    match who {
        Some((why, remedy)) => {
            (problem.why, problem.remedy) = (why.clone(), format!("{remedy}: {THEN}"));
        }
        None if problem.remedy.ends_with(THEN) => {
            problem.why = "somebody else had it until just now".to_owned();
            problem.remedy = format!("wait: {THEN}");
        }
        None => {}
    }
}

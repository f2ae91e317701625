//! The logs that the server has, while their files are taken away.
//!
//! Promise: a log whose files were removed is there again before the next server looks for it; the
//! server that wrote into files without a name is replaced.
//! Never: touches a log that was only moved, or that no server has served yet.

use super::state::{Held, Supervisor};
use crate::orders::{LogOrders, ServerReady};
use crate::supervisor::log_place::{LogPlace, Step, reason};
use holdfast_attach::whereabouts::{Home, Lost};
use holdfast_config::problem::Problem;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

impl Supervisor {
    /// Has another server serve where the files of a log were removed.
    pub(super) fn look_at_log_places(&mut self) {
        let is_served = self.running.as_ref().is_some_and(|running| running.process.was_ready);
        if !is_served || !self.may_renew() {
            return;
        }
        self.look_at_stores();
        let may_end = self.watched.hindered().is_none() && !self.has_store_trouble();
        let mut renews = self.look_at_logs_of_stores(may_end);
        for at in 0..self.held.orders.logs.len() {
            let of = self.held.orders.logs[at].clone();
            let Some(place) = self.places.logs.get_mut(&of.service) else { continue };
            match place.look(&lost(&of, &self.held.homes), &self.held.directories[at], may_end) {
                Step::GoOn => continue,
                Step::Renew => {}
                Step::Replace(made) => self.held.replace(at, made),
            }
            renews = true;
        }
        self.tell_log_troubles();
        if renews {
            self.renew();
        }
    }

    /// Before a server looks for the logs, when none has them. What cannot be made again is left
    /// out.
    pub(super) fn restore_logs(&mut self) -> Vec<(String, Problem)> {
        let mut left_out = Vec::new();
        for at in 0..self.held.orders.logs.len() {
            let of = self.held.orders.logs[at].clone();
            let Some(place) = self.places.logs.get_mut(&of.service) else { continue };
            match place.restore(&lost(&of, &self.held.homes), &self.held.directories[at]) {
                Ok(None) => {}
                Ok(Some(made)) => self.held.replace(at, made),
                Err(problem) => left_out.push((of.service, problem)),
            }
        }
        left_out.extend(self.restore_stores());
        left_out
    }

    /// Why a server did not come to serve, if the files of a log had been removed.
    pub(super) fn log_reason(&self, said: Problem) -> Problem {
        let logs = self.held.orders.logs.iter().zip(&self.held.directories);
        let logs = logs.filter(|(of, _)| self.places.logs.contains_key(&of.service));
        let said = self.store_reason(said);
        logs.fold(said, |said, (of, held)| reason(&lost(of, &self.held.homes), held, said))
    }

    /// A server serves these logs: from now on they are looked at.
    pub(super) fn note_served(&mut self, ready: &ServerReady) {
        let served = ready.verdicts.iter().map(|(service, _)| service);
        let logs = &self.held.orders.logs;
        let logs = served.filter(|service| logs.iter().any(|of| of.service == **service));
        for service in logs {
            self.places.logs.entry(service.clone()).or_default();
        }
        self.note_stores(ready);
    }

    fn tell_log_troubles(&self) {
        let told =
            |(of, place): (&String, &LogPlace)| Some((of.clone(), place.trouble()?.to_owned()));
        let troubles = self.places.logs.iter().filter_map(told);
        let troubles: BTreeMap<_, _> = troubles.chain(self.log_troubles_of_tables()).collect();
        self.watched.change(|s| s.of.log_troubles = troubles);
    }
}

impl Held {
    /// A log is in another directory from now on.
    fn replace(&mut self, at: usize, made: OwnedFd) {
        self.orders.logs[at].directory_fd = made.as_raw_fd();
        self.directories[at] = made;
    }
}

fn lost<'a>(of: &'a LogOrders, homes: &'a BTreeMap<String, PathBuf>) -> Lost<'a> {
    let (log, medium) = (of.log.log.as_path(), of.log.memory.medium());
    let home = homes.get(&of.service).map(|path| Home::ByName(path));
    Lost {
        service: &of.service,
        log,
        medium,
        config: of.log.log_config(),
        home,
        is_of_store: false,
    }
}

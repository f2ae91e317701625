//! Whether all is well.
//!
//! Promise: every way in which something configured is not as it should be is a line here, and the
//! exit code of `status` says whether there is one; text, JSON and code are the same facts.
//! Never: finds anything out.

use super::StatusReport;
use super::disk::DiskStatus;
use super::health::Health;
use super::power::PowerStatus;
use super::served::{LogStatus, ServerStatus};
use super::volume::VolumeStatus;
use crate::supervisor::life::known::State;
use holdfast_machine::standstill::Standstill;

impl StatusReport {
    /// With what is not well, from all else that it says.
    pub fn judged(mut self) -> Self {
        let volumes = self.volumes.iter().flat_map(of_volume);
        let server = self.server.iter().flat_map(of_server);
        let logs = self.logs.iter().flat_map(of_log);
        let disks = self.disks.iter().flat_map(of_disk);
        let tables = self.tables.iter();
        let tables = tables.map(|it| service("table", (&it.name, &it.state), &it.problem));
        let snapshots = self.snapshots.iter();
        let snapshots =
            snapshots.map(|it| service("snapshots", (&it.name, &it.state), &it.problem));
        let services = tables.chain(snapshots).flatten();
        let ending = self.keeper.iter().filter(|keeper| keeper.is_ending);
        let ending = ending.map(|_| "the keeper is ending".to_owned());
        let keeper = ending.chain(self.keeper.iter().filter_map(|keeper| keeper.problem.clone()));
        let beside = self.without_section.iter().map(ToString::to_string);
        let power = self.power.iter().filter_map(PowerStatus::trouble);
        self.troubles = keeper
            .chain(power)
            .chain(volumes)
            .chain(server)
            .chain(logs)
            .chain(disks)
            .chain(services)
            .chain(beside)
            .collect();
        self.health = match (&self.keeper, &self.no_answer) {
            (_, Some(_)) => Health::NoAnswer,
            (None, None) => Health::NotRunning,
            (Some(_), None) if self.troubles.is_empty() => Health::Serving,
            (Some(_), None) => Health::Degraded,
        };
        self
    }

    /// How everything is, in a line.
    pub fn line(self) -> String {
        let troubles = self.judged().troubles;
        match troubles.is_empty() {
            true => "everything that is configured is served".to_owned(),
            false => format!("not well: {}", troubles.join("; ")),
        }
    }
}

fn of_volume(volume: &VolumeStatus) -> Vec<String> {
    let whose = format!("volume {}", volume.name);
    let state = unless(&volume.state, State::Serving.word(), &whose);
    let problem = volume.problem.iter().filter(|_| state.is_none());
    let problem: Vec<_> = problem.map(|problem| format!("{whose}: {problem}")).collect();
    state.into_iter().chain(problem).chain(standing(&whose, &volume.standstills)).collect()
}

fn of_server(server: &ServerStatus) -> Vec<String> {
    let state = unless(&server.state, State::Serving.word(), "the server");
    let problem = server.problem.iter().filter(|_| state.is_none());
    let problem: Vec<_> = problem.map(|problem| format!("the server: {problem}")).collect();
    let standing = standing("the server", &server.standstills);
    state.into_iter().chain(problem).chain(standing).collect()
}

fn of_log(log: &LogStatus) -> Vec<String> {
    let whose = format!("log {}", log.name);
    let errors = log.problem.iter().chain(&log.last_error);
    let errors = errors.map(|error| format!("{whose}: {error}"));
    errors.chain(standing(&whose, &log.standstills)).collect()
}

fn of_disk(disk: &DiskStatus) -> Vec<String> {
    let whose = format!("disk {}", disk.name);
    let mut troubles = service("disk", (&disk.name, &disk.state), &disk.problem);
    troubles.extend(disk.last_error.iter().map(|error| format!("{whose}: {error}")));
    if let Some(front) = &disk.front_end {
        let of_front = format!("the front end of {whose}");
        troubles.extend(unless(&front.state, State::Serving.word(), &of_front));
        troubles.extend(standing(&whose, &front.standstills));
    }
    troubles
}

fn service(kind: &str, (name, state): (&str, &str), problem: &Option<String>) -> Vec<String> {
    let whose = format!("{kind} {name}");
    let problem = problem.iter().map(|problem| format!("{whose}: {problem}"));
    unless(state, "served", &whose).into_iter().chain(problem).collect()
}

fn unless(state: &str, well: &str, whose: &str) -> Option<String> {
    (state != well).then(|| format!("{whose} is {state}"))
}

fn standing(whose: &str, standstills: &[Standstill]) -> Vec<String> {
    standstills.iter().map(|standstill| format!("{whose}: {standstill}")).collect()
}

//! `holdfast status`.
//!
//! Promise: tells what is known with a keeper and without one, within seconds whatever stands
//! still; the exit code says whether all is well (0), something is not (7), no keeper runs (4), or
//! the keeper does not answer (8).
//! Never: waits for a front end: counters come from the regions.

use crate::output::Output;
use holdfast_config::Config;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_keeper::control::{Answer, Command, ask};
use holdfast_keeper::report::{StatusReport, VolumeStatus};
use holdfast_machine::configuration;
use std::collections::BTreeMap;
use std::path::Path;

/// Prints the status of everything.
pub(crate) fn status(config: &Path, output: Output) -> Outcome<Exit> {
    let config = configuration::load(config)?;
    let report = match ask(&config.keeper.socket, Command::Status, &mut |_| {}) {
        Ok(Answer::Status(report)) => *report,
        Ok(Answer::Text(why)) => {
            let what = "reading the status";
            return Err(Problem::new(Exit::Failed, what, why, "use the keeper's version"));
        }
        Err(problem) if problem.exit == Exit::NotRunning => without_keeper(&config),
        Err(problem) if problem.exit == Exit::NoAnswer => {
            StatusReport { no_answer: Some(problem.to_string()), ..without_keeper(&config) }
        }
        Err(problem) => return Err(problem),
    }
    .judged();
    output.result(&report, &report.text());
    Ok(report.health.exit())
}

/// What configuration and regions tell.
fn without_keeper(config: &Config) -> StatusReport {
    let power = config.keeper.power;
    let one = |(name, volume): (&String, _)| VolumeStatus::unattached(name, volume, power);
    let volumes = config.volumes.iter().map(one).collect();
    StatusReport::new(None, volumes).with(config, None, None, &BTreeMap::new())
}

//! `holdfast status`.
//!
//! Promise: tells what is known with a keeper and without one, within seconds whatever stands
//! still; the exit code says whether all is well (0), something is not (7), no keeper runs (4), or
//! the keeper does not answer (8).
//! Never: waits for a front end: counters come from the regions.

use crate::commands::apart;
use crate::output::Output;
use holdfast_config::Config;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_keeper::control::{Answer, Command, ask, refuse_other_file};
use holdfast_keeper::report::{StatusReport, VolumeStatus};
use holdfast_machine::configuration;
use std::path::Path;

/// Prints the status of everything.
pub(crate) fn status(config: &Path, output: Output) -> Outcome<Exit> {
    let config = configuration::load(config)?;
    let report = match ask(&config, Command::Status, &mut |_| {}) {
        Ok(Answer::Status(report)) => {
            let mut report = of_another_file(&config, *report);
            apart::tell(&config, &mut report);
            report
        }
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

/// What a keeper tells. That it is another one's comes first of what is not well.
fn of_another_file(config: &Config, mut report: StatusReport) -> StatusReport {
    let Some(keeper) = &mut report.keeper else { return report };
    let (mine, theirs) = (config.file.as_deref(), keeper.configuration.as_deref());
    if let Err(other) = refuse_other_file("asking", mine, theirs) {
        let own = keeper.problem.take().map_or_else(String::new, |own| format!("; {own}"));
        keeper.problem = Some(format!("{}: {}{own}", other.why, other.remedy));
    }
    report
}

/// What configuration and regions tell.
fn without_keeper(config: &Config) -> StatusReport {
    let one = |(name, volume): (&String, _)| {
        VolumeStatus::unattached(name, volume, config.power_of(volume))
    };
    let volumes = config.volumes.iter().map(one).collect();
    let report = StatusReport::new(None, volumes).of_nobody(config);
    report.beside(config.media())
}

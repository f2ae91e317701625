//! `holdfast mount`, `upgrade` and `drill`: what only a running keeper can do.
//!
//! Promise: the keeper's answer, unchanged, unless the volume is not seen where this command runs.
//! Never: mounts anything itself; the mount would end with this command.

use crate::cli::UpgradeCommand;
use crate::commands::apart;
use crate::output::{Output, Progress};
use holdfast_config::Config;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_keeper::control::{Answer, Command, ask};
use holdfast_machine::configuration;
use std::path::{Path, PathBuf};

/// Asks the keeper to attach and mount a volume; returns when it is served.
pub(crate) fn mount(config: &Path, name: String, output: Output) -> Outcome<()> {
    let config = configuration::load(config)?;
    // The keeper would say the same, but a misspelt name is told without a keeper too.
    config.volume(&name)?;
    let answer = answer_of(&config, Command::Mount { name: name.clone() });
    let is_there = answer.as_ref().map_or_else(|problem| problem.exit == Exit::InUse, |_| true);
    if is_there {
        apart::refuse_now(&config, (&format!("mounting volume {name}"), &name))?;
    }
    print(answer?, output);
    Ok(())
}

/// Asks the keeper to replace one of its processes; returns when the new one serves.
pub(crate) fn upgrade(config: &Path, command: UpgradeCommand, output: Output) -> Outcome<()> {
    let absolute = |binary: Option<PathBuf>| {
        binary.map(std::path::absolute).transpose().map_err(|error| {
            Problem::new(Exit::Usage, "finding the binary", error, "name it with --binary PATH")
        })
    };
    let command = match command {
        UpgradeCommand::Server { binary } => Command::UpgradeServer { binary: absolute(binary)? },
        UpgradeCommand::Disk { name, binary } => {
            Command::UpgradeDisk { name, binary: absolute(binary)? }
        }
        UpgradeCommand::Volume { name, binary } => {
            Command::UpgradeVolume { name, binary: absolute(binary)? }
        }
    };
    print(answer_of(&configuration::load(config)?, command)?, output);
    Ok(())
}

/// Asks the keeper for a drill; returns when it is passed.
pub(crate) fn drill(config: &Path, output: Output) -> Outcome<()> {
    print(answer_of(&configuration::load(config)?, Command::Drill)?, output);
    Ok(())
}

/// Sends one request to the keeper.
pub(super) fn answer_of(config: &Config, command: Command) -> Outcome<Answer> {
    let mut progress = Progress::new();
    ask(config, command, &mut |text| progress.say(text))
}

fn print(answer: Answer, output: Output) {
    match answer {
        Answer::Text(text) => output.done(&text),
        Answer::Status(report) => output.result(&report, &report.text()),
    }
}

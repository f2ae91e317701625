//! `holdfast wait`.
//!
//! Promise: success means that the volume is served; a failure says why it is not.
//! Never: mounts anything itself; the keeper does.

use crate::output::{Output, Progress};
use holdfast_config::Config;
use holdfast_config::exit::Exit;
use holdfast_config::problem::Outcome;
use holdfast_keeper::control::{Answer, Command, ask};
use holdfast_keeper::report::ATTACHING;
use holdfast_machine::configuration;
use std::path::Path;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a keeper that was started just now may take until it answers.
const KEEPER_COMES: Duration = Duration::from_secs(5);

/// How a volume is, as far as waiting goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Served,
    Coming,
    Not,
}

/// Waits until the volume is served.
pub(crate) fn wait(config: &Path, name: &str, output: Output) -> Outcome<()> {
    let config = configuration::load(config)?;
    config.volume(name)?;
    let (begun, mut progress) = (Instant::now(), Progress::new());
    loop {
        let seen = look(&config, name).or_else(|problem| {
            let may_come = problem.exit == Exit::NotRunning && begun.elapsed() < KEEPER_COMES;
            if may_come { Ok(Seen::Coming) } else { Err(problem) }
        });
        match seen? {
            Seen::Served => break,
            Seen::Coming => std::thread::sleep(LOOK_EVERY),
            Seen::Not => mount(&config, name, &mut progress)?,
        }
    }
    drop(progress);
    output.done(&format!("{name} is served"));
    Ok(())
}

fn look(config: &Config, name: &str) -> Outcome<Seen> {
    let answer = ask(&config.keeper.socket, Command::Status, &mut |_| {})?;
    let Answer::Status(report) = answer else { return Ok(Seen::Not) };
    let volume = report.volumes.iter().find(|volume| volume.name == name);
    Ok(match volume.map(|volume| volume.state.as_str()) {
        Some("serving") => Seen::Served,
        Some(ATTACHING | "starting" | "restarting") => Seen::Coming,
        _ => Seen::Not,
    })
}

/// Asks for it; that somebody else has just done so is as good.
fn mount(config: &Config, name: &str, progress: &mut Progress) -> Outcome<()> {
    let command = Command::Mount { name: name.to_owned() };
    match ask(&config.keeper.socket, command, &mut |text| progress.say(text)) {
        Err(problem) if problem.exit == Exit::InUse => {
            std::thread::sleep(LOOK_EVERY);
            // It may have been mounted since it was looked at.
            if look(config, name)? != Seen::Not { Ok(()) } else { Err(problem) }
        }
        answered => answered.map(drop),
    }
}

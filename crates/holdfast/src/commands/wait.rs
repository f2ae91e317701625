//! `holdfast wait`.
//!
//! Promise: success means that the volume is served, as what it is configured as, by a keeper that
//! goes on, and seen where this command runs; a failure says why it is not.
//! Never: mounts anything itself; the keeper does.

use crate::commands::apart;
use crate::output::{Output, Progress};
use holdfast_config::Config;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_keeper::control::{Answer, Command, ask, is_starting, refuse_other_file};
use holdfast_keeper::report::{ATTACHING, VolumeStatus};
use holdfast_machine::configuration;
use std::path::Path;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a keeper that was started just now may take until it answers.
const KEEPER_COMES: Duration = Duration::from_secs(5);

/// How long one that is there may take until it listens: it looks through what was left first.
const KEEPER_LISTENS: Duration = Duration::from_mins(1);

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
            let may_come = begun.elapsed() < patience(&config, problem.exit);
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

/// How long a keeper that was asked in vain may take from the beginning on.
fn patience(config: &Config, exit: Exit) -> Duration {
    match exit {
        Exit::NotRunning => KEEPER_COMES,
        Exit::NoAnswer if is_starting(&config.keeper.socket) => KEEPER_LISTENS,
        _ => Duration::ZERO,
    }
}

fn look(config: &Config, name: &str) -> Outcome<Seen> {
    let answer = ask(config, Command::Status, &mut |_| {})?;
    let Answer::Status(report) = answer else { return Ok(Seen::Not) };
    let theirs = report.keeper.as_ref().and_then(|keeper| keeper.configuration.as_deref());
    let what = format!("waiting for volume {name}");
    refuse_other_file(&what, config.file.as_deref(), theirs)?;
    let volume = report.volumes.iter().find(|volume| volume.name == name);
    let is_ending = report.keeper.as_ref().is_some_and(|keeper| keeper.is_ending);
    Ok(match volume.map(|volume| volume.state.as_str()) {
        // Whoever asks it for the volume hears why not.
        _ if is_ending => Seen::Not,
        Some("serving") => {
            volume.map_or(Ok(()), |volume| refuse_elsewhere(config, volume))?;
            apart::refuse(config, &report, (&what, name))?;
            Seen::Served
        }
        Some(ATTACHING | "starting" | "restarting") => Seen::Coming,
        _ => Seen::Not,
    })
}

/// Refuses what is served at other places than the configuration has for it by now.
fn refuse_elsewhere(config: &Config, served: &VolumeStatus) -> Outcome<()> {
    let (name, wanted) = (&served.name, config.volume(&served.name)?);
    let places = [("home", wanted.home != served.home), ("mount", wanted.mount != served.mount)];
    let others: Vec<&str> = places.iter().filter_map(|(key, is)| is.then_some(*key)).collect();
    if others.is_empty() {
        return Ok(());
    }
    let others = others.join(" and ");
    let why = format!("it is served, and the configuration has another {others} for it by now");
    let remedy =
        format!("put back what it had, or `holdfast umount {name}`, then `holdfast mount {name}`");
    Err(Problem::new(Exit::InUse, format!("waiting for volume {name}"), why, remedy))
}

/// Asks for it; that somebody else has just done so is as good.
fn mount(config: &Config, name: &str, progress: &mut Progress) -> Outcome<()> {
    let command = Command::Mount { name: name.to_owned() };
    match ask(config, command, &mut |text| progress.say(text)) {
        Err(problem) if problem.exit == Exit::InUse => {
            std::thread::sleep(LOOK_EVERY);
            // It may have been mounted since it was looked at.
            if look(config, name)? != Seen::Not { Ok(()) } else { Err(problem) }
        }
        answered => answered.map(drop),
    }
}

//! `holdfast shutdown`.
//!
//! Promise: returns when the keeper has ended, and says meanwhile what it waits for; success means
//! that every volume is given back, and that the keeper has lost no memory.
//! Never: cuts anybody off by itself.

use crate::config::{Config, VolumeConfig};
use crate::control::{Answer, Asking, Command, KeeperProcess, ask};
use crate::exit::Exit;
use crate::keeper::memory::left_aside;
use crate::output::{Output, Progress};
use crate::problem::{Outcome, Problem};
use crate::report::{NOT_MADE, VolumeStatus};
use holdfast_memory::Medium;
use std::path::Path;
use std::time::Duration;

/// How often is asked what the keeper waits for.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// Has the keeper give every volume back and end.
pub(crate) fn shutdown(config: &Path, output: Output) -> Outcome<()> {
    let config = Config::load(config)?;
    let socket = &config.keeper.socket;
    let keeper = KeeperProcess::at(socket);
    let mut progress = Progress::new();
    let mut asking = Asking::begin(socket, Command::Shutdown)?;
    if let Answer::Text(text) = asking.answer(&mut |text| progress.say(text))? {
        progress.say(&text);
    }
    while !keeper.has_ended_within(ASK_EVERY) {
        progress.say(&waits_for(socket));
    }
    drop(progress);
    refuse_left(&config)?;
    refuse_left_aside(&config)?;
    asking.last_word()?;
    output.done("every volume is given back, and the keeper has ended");
    Ok(())
}

/// What the keeper waits for, for people.
fn waits_for(socket: &Path) -> String {
    let report = match ask(socket, Command::Status, &mut |_| {}) {
        Ok(Answer::Status(report)) => report.keeper,
        _ => None,
    };
    match report.map(|keeper| keeper.waits_for).filter(|waits| !waits.is_empty()) {
        Some(waits) => format!("the keeper waits for {}", waits.join("; ")),
        None => "the keeper ends".to_owned(),
    }
}

/// Memory whose name led elsewhere at the end was left under another one.
fn refuse_left_aside(config: &Config) -> Outcome<()> {
    let left = |medium: Medium| Some((left_aside(&medium)?, medium.path()?.to_owned()));
    let Some((left, path)) = config.media().find_map(left) else { return Ok(()) };
    let (left, path) = (left.display(), path.display());
    let why = format!("the keeper has ended, and left the memory of {path} at {left}");
    let remedy = format!("move what is at {path} away, if anything is, and {left} there");
    Err(Problem::new(Exit::Failed, "leaving all memory under its name", why, remedy))
}

/// What a keeper could not give back before it ended is left where it is.
fn refuse_left(config: &Config) -> Outcome<()> {
    let of = |(name, volume): (&String, &VolumeConfig)| {
        VolumeStatus::unattached(name, volume, config.keeper.power)
    };
    let is_left =
        |it: &VolumeStatus| !["detached", "failed", NOT_MADE].contains(&it.state.as_str());
    let left: Vec<VolumeStatus> = config.volumes.iter().map(of).filter(is_left).collect();
    let Some(first) = left.first() else { return Ok(()) };
    let text = |it: &VolumeStatus| format!("volume {} is {}", it.name, it.state);
    let why = left.iter().map(text).collect::<Vec<_>>().join(", ");
    let remedy =
        format!("see the keeper's log for the reason, then `holdfast umount {}`", first.name);
    let what = "giving every volume back";
    Err(Problem::new(Exit::Failed, what, format!("the keeper has ended, and {why}"), remedy))
}

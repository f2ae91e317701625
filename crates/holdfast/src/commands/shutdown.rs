//! `holdfast shutdown`.
//!
//! Promise: returns when the keeper has ended, and says meanwhile what it waits for; success means
//! that every volume is given back, and that the keeper has lost no memory. It says what the keeper
//! itself ends with.
//! Never: cuts anybody off by itself.

use crate::output::{Output, Progress};
use holdfast_config::Config;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_keeper::control::{Answer, Asking, Command, KeeperProcess, ask};
use holdfast_keeper::left;
use holdfast_machine::configuration;
use std::path::Path;
use std::time::Duration;

/// How often is asked what the keeper waits for.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// Has the keeper give every volume back and end.
pub(crate) fn shutdown(config: &Path, output: Output) -> Outcome<()> {
    let config = configuration::load(config)?;
    let keeper = KeeperProcess::at(&config.keeper.socket);
    let mut progress = Progress::new();
    let mut asking = Asking::begin(&config, Command::Shutdown)?;
    if let Answer::Text(text) = asking.answer(&mut |text| progress.say(text))? {
        progress.say(&text);
    }
    while !keeper.has_ended_within(ASK_EVERY) {
        progress.say(&waits_for(&config));
    }
    drop(progress);
    // It knows what it has brought home, and what has a name that looks like it.
    asking.last_word().unwrap_or_else(|| look_at_the_end(&config))?;
    output.done("every volume is given back, and the keeper has ended");
    Ok(())
}

/// What the keeper waits for, for people.
fn waits_for(config: &Config) -> String {
    let report = match ask(config, Command::Status, &mut |_| {}) {
        Ok(Answer::Status(report)) => report.keeper,
        _ => None,
    };
    match report.map(|keeper| keeper.waits_for).filter(|waits| !waits.is_empty()) {
        Some(waits) => format!("the keeper waits for {}", waits.join("; ")),
        None => "the keeper ends".to_owned(),
    }
}

/// What is seen of the end of a keeper that did not say itself how that was.
fn look_at_the_end(config: &Config) -> Outcome<()> {
    let volumes = left::refuse_volumes(config, |_| false).err();
    Problem::all(volumes.into_iter().chain(left::aside(config)))
}

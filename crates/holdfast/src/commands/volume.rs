//! `holdfast volume make | check | mend | accept | list`; `skip` and `aside` are in [`aside`].
//!
//! Promise: `make` makes the log and leaves what is in the home as it is; `mend` makes a log whose
//! disk failed usable again; `list` changes nothing. [`check`] and [`accept`] have files of their
//! own.
//! Never: works on a volume that is served.

use crate::cli::VolumeCommand;
use crate::commands::accept;
use crate::commands::aside;
use crate::commands::check;
use crate::commands::making::{
    Made, aloud, make_log, make_log_in, refuse_kept, refuse_left_in_memory, refuse_mounted,
    unmount_first,
};
use crate::output::{Output, Progress};
use holdfast_attach::made::{is_made, may_be_made};
use holdfast_attach::observe::observe;
use holdfast_client::protocol::LOG_PREFIX;
use holdfast_config::claims::PowerSource;
use holdfast_config::problem::Outcome;
use holdfast_config::sizes::rounded;
use holdfast_config::verdict_text;
use holdfast_config::{Config, VolumeConfig, Way};
use holdfast_front::ublk;
use holdfast_keeper::report::OUT_OF_PLACE;
use holdfast_machine::configuration;
use holdfast_machine::found::{memory_of, verdict, verdict_of_log};
use holdfast_machine::mounts::our_mount_of;
use holdfast_process::front;
use std::path::Path;

/// Does what is asked of volumes.
pub(crate) fn volume(config: &Path, command: VolumeCommand, output: Output) -> Outcome<()> {
    let config = configuration::load(config)?;
    match command {
        VolumeCommand::Make { name } => make(&config, &name, output),
        VolumeCommand::Check { name } => check::check(&config, &name, output),
        VolumeCommand::Mend { name } => mend(&config, &name, output),
        VolumeCommand::Accept { name, what } => accept::accept(&config, &name, what, output),
        VolumeCommand::Skip { name } => aside::skip(&config, &name, output),
        VolumeCommand::Aside { name } => aside::aside(&config, &name, output),
        VolumeCommand::List => {
            list(&config, output);
            Ok(())
        }
    }
}

fn make(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let volume = config.volume(name)?;
    let verdict = verdict(name, volume, config.power_of(volume))?;
    let mut progress = Progress::new();
    make_log(name, config, Made::Volume, &mut |text| progress.say(text))?;
    drop(progress);
    let log = volume.log.display();
    output.done(&format!("{name} is made: its log is in {log}\n{}", verdict_text(&verdict)));
    Ok(())
}

/// Makes a log that the server serves.
pub(super) fn make_served(config: &Path, name: &str, output: Output) -> Outcome<()> {
    let config = configuration::load(config)?;
    let log = config.log(name)?;
    let whose = format!("log {name}");
    if !is_made(&log.log) {
        refuse_left_in_memory(&format!("{LOG_PREFIX}{name}"), &log.memory.medium())?;
    }
    let verdict = verdict_of_log(&whose, log, memory_of(&log.memory), PowerSource::None)?;
    let mut progress = Progress::new();
    let say = &mut |text: &str| progress.say(text);
    make_log_in(&whose, &log.log, &log.log_config(), say)?;
    drop(progress);
    let place = log.log.display();
    output.done(&format!("{name} is made, in {place}\n{}", verdict_text(&verdict)));
    Ok(())
}

fn mend(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let volume = config.volume(name)?;
    refuse_mounted(format!("mending volume {name}"), volume, unmount_first)?;
    if volume.way == Way::Queue {
        refuse_kept(config, format!("mending volume {name}"))?;
    }
    let mut progress = Progress::new();
    let say = || progress.say(&format!("{name}: writing what memory has to the log once more"));
    let mended = aloud(say, || front::mend(name, volume))?;
    drop(progress);
    let (rewritten, undrained) = (rounded(mended.rewritten_bytes), rounded(mended.undrained_bytes));
    output.done(&format!(
        "{name} is mended: {rewritten} of its log were written again and read back, {undrained} \
         follow as soon as it serves; `holdfast mount {name}`"
    ));
    Ok(())
}

fn list(config: &Config, output: Output) {
    let volumes: Vec<serde_json::Value> = config.volumes.iter().map(listed).collect();
    let text = |volume: &serde_json::Value| {
        let field = |key: &str| volume[key].as_str().unwrap_or_default().to_owned();
        let is = match volume["made"].as_bool() {
            Some(true) => field("mounted"),
            Some(false) => "not made".to_owned(),
            None => "cannot be looked at by this user".to_owned(),
        };
        format!("{:<16} {:<12} {} -> {}\n", field("name"), is, field("home"), field("found_at"))
    };
    let text: String = volumes.iter().map(text).collect();
    let text = if text.is_empty() { "no volumes are configured".to_owned() } else { text };
    output.result(&volumes, &text);
}

fn listed((name, volume): (&String, &VolumeConfig)) -> serde_json::Value {
    let is_mounted = our_mount_of(volume).is_some_and(|mount| mount.source == *name);
    let is_served = || observe(&volume.medium()).is_ok_and(|seen| seen.front_end_pid.is_some());
    let mounted = match &volume.mount {
        Some(_) if is_mounted => "mounted",
        Some(_) if is_served() => OUT_OF_PLACE,
        Some(_) => "not mounted",
        None if is_served() => "attached",
        None => "not attached",
    };
    serde_json::json!({
        "name": name,
        "home": volume.home,
        "mount": volume.mount,
        "sockets": volume.sockets(),
        "ublk": volume.ublk.map(ublk::block_path),
        "found_at": volume.found_at(),
        "log": volume.log,
        "made": may_be_made(&volume.log),
        "mounted": mounted,
    })
}

//! `holdfast umount`.
//!
//! Promise: with a keeper or without one, after success the home is complete and ordinary and
//! nothing waits in memory.
//! Never: gives up a home half done: whatever failed, the next attempt goes on from there.

use super::front::give_back;
use super::mount::ask_and_print;
use crate::config::{Config, VolumeConfig};
use crate::control::{Command, is_answering};
use crate::exit::Exit;
use crate::keeper::mounts::{mounted_at, unmount_at};
use crate::observe::observe;
use crate::output::{Output, Progress};
use crate::problem::{Outcome, Problem};
use crate::sizes::rounded;
use std::path::Path;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Unmounts a volume, by the keeper if one runs.
pub(crate) fn umount(config: &Path, name: &str, force: bool, output: Output) -> Outcome<()> {
    let config = Config::load(config)?;
    let volume = config.volume(name)?;
    if is_answering(&config.keeper.socket) {
        return ask_and_print(&config, Command::Umount { name: name.to_owned(), force }, output);
    }
    let mut progress = Progress::new();
    if mounted_at(&volume.mount).is_some_and(|mount| mount.is_ours()) {
        check_source(name, volume)?;
        unmount_at(&volume.mount, force)?;
    }
    wait_for_front_end(name, volume, &mut progress);
    give_back(name, volume, config.keeper.power, &mut |text| progress.say(text))?;
    drop(progress);
    let home = volume.home.display();
    output.done(&format!("{name} is given back: {home} is complete (no keeper was running)"));
    Ok(())
}

fn check_source(name: &str, volume: &VolumeConfig) -> Outcome<()> {
    let source = mounted_at(&volume.mount).map_or_else(String::new, |mount| mount.source);
    match source == name {
        true => Ok(()),
        false => Err(Problem::new(
            Exit::InUse,
            format!("unmounting volume {name}"),
            format!("volume {source} is mounted at {}", volume.mount.display()),
            format!("`holdfast umount {source}`, or correct the configuration"),
        )),
    }
}

/// A front end whose keeper is gone learns from the kernel that its mount is, detaches, and ends; a
/// server then has no client any more, and ends too.
fn wait_for_front_end(name: &str, volume: &VolumeConfig, progress: &mut Progress) {
    let mut spoken = Instant::now();
    while let Ok(seen) = observe(&volume.medium()) {
        let Some(pid) = seen.server_pid else { break };
        if spoken.elapsed() >= Duration::from_secs(1) {
            spoken = Instant::now();
            let left = rounded(seen.unapplied_bytes());
            progress.say(&format!("{name}: process {pid} has {left} to apply to the home"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

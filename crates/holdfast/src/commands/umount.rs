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
use crate::keeper::listeners::refuse_connected;
use crate::keeper::mounts::{Mount, our_mount_of, unmount_at};
use crate::observe::observe;
use crate::output::{Output, Progress};
use crate::problem::{Outcome, Problem};
use crate::sizes::rounded;
use rustix::process::{Pid, Signal, kill_process};
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
    if let Some(mount) = our_mount_of(volume) {
        check_source(name, &mount)?;
    }
    end_use(name, volume, force)?;
    wait_for_front_end(name, volume, &mut progress);
    give_back(name, volume, config.keeper.power, &mut |text| progress.say(text))?;
    drop(progress);
    let home = volume.home.display();
    output.done(&format!("{name} is given back: {home} is complete (no keeper was running)"));
    Ok(())
}

fn check_source(name: &str, mount: &Mount) -> Outcome<()> {
    let source = &mount.source;
    match source == name {
        true => Ok(()),
        false => Err(Problem::new(
            Exit::InUse,
            format!("unmounting volume {name}"),
            format!("volume {source} is mounted at {}", mount.point.display()),
            format!("`holdfast umount {source}`, or correct the configuration"),
        )),
    }
}

/// Takes the volume away from its users. Where nothing was mounted the front end has to be told.
fn end_use(name: &str, volume: &VolumeConfig, force: bool) -> Outcome<()> {
    if !force {
        refuse_connected(&format!("unmounting volume {name}"), volume)?;
    }
    if let Some(mount) = our_mount_of(volume) {
        return unmount_at(&mount.point, force);
    }
    if volume.mount.is_none() {
        let front_end = observe(&volume.medium()).ok().and_then(|seen| seen.front_end_pid);
        let front_end = front_end.and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let _ = front_end.map(|pid| kill_process(pid, Signal::INT));
    }
    Ok(())
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

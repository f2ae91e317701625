//! Who serves what is mounted.
//!
//! Promise: a process that has the connection behind a FUSE file system open is found, where the
//! kernel tells which connection a descriptor is. Where it does not, nobody is, nor where the
//! connection has ended: a connection that was there before may have had the same number.
//! Never: counts this process, or who started it and may keep descriptors for it; waits for a
//! server that does not answer.

use super::table::{Mount, SHOWN_MAX, all_mounts, leads_to, our_mount_at};
use crate::bounded;
use crate::processes::{BRIEF, HELD_UP, Process, ask, ask_all, is_trusted_process};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::{Shown, process};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fstatfs, open};
use rustix::io::Errno;
use rustix::process::getppid;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// What is mounted over a connection. Where the kernel tells, it is asked and not the path.
pub fn mount_of(connection: &OwnedFd, point: &Path, source: &str) -> Option<Mount> {
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", connection.as_raw_fd()));
    let Some(device) = told.ok().as_deref().and_then(device) else {
        return our_mount_at(point, source);
    };
    if !is_connected(connection) {
        return None;
    }
    let is_it = |it: &Mount| it.is_ours() && it.source == source && it.device == device;
    let mounts: Vec<Mount> = all_mounts().into_iter().rev().filter(is_it).collect();
    let at = leads_to(point);
    let is_there = |mount: &&Mount| mount.point == at;
    mounts.iter().find(is_there).or_else(|| mounts.last()).cloned()
}

/// The device behind a connection that leads to a file system, where the kernel tells.
pub(super) fn device_of(connection: &OwnedFd) -> Option<String> {
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", connection.as_raw_fd()));
    is_connected(connection).then(|| device(&told.ok()?)).flatten()
}

/// Refuses what somebody else serves; `but` is no somebody else.
pub fn refuse_served(what: &str, mount: &Mount, but: Option<u32>) -> Outcome<()> {
    let (servers, silent) = servers_of(&mount.device);
    let is_ours = servers.iter().any(|pid| Some(*pid) == but);
    let is_free = servers.is_empty() && silent.is_empty();
    if is_free || is_ours || has_ended(mount) {
        return Ok(());
    }
    let point = Shown::name(&mount.point);
    let (why, remedy) = if servers.is_empty() {
        let who = process::all_named(&silent, SHOWN_MAX);
        (format!("{who} may serve what is mounted at {point}, and does not tell"), HELD_UP)
    } else {
        let who = process::all_named(&servers, SHOWN_MAX);
        let remedy = "unmount it with the configuration or program that mounted it, or set \
                      another mount";
        (format!("{who} serves what is mounted at {point}"), remedy)
    };
    Err(Problem::new(Exit::InUse, what, why, remedy))
}

/// Whether the connection behind a mount is known to have ended. A server that stands still is
/// asked in vain, by a thread that waits for it.
pub(super) fn has_ended(mount: &Mount) -> bool {
    let point = mount.point.clone();
    let asked = bounded::ask(PathBuf::from(&mount.device), move || {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let asked = open(point, flags, Mode::empty()).and_then(|root| fstatfs(&root));
        asked.err() == Some(Errno::NOTCONN)
    });
    asked.unwrap_or(false)
}

/// The processes that serve the FUSE file system with this device, and those of them who decide
/// here that do not tell. A stranger's silence counts for nothing: he could say anything, too.
fn servers_of(device: &str) -> (Vec<u32>, Vec<u32>) {
    let parent = getppid().map(|parent| parent.as_raw_nonzero().get().cast_unsigned());
    let is_other = |pid: &u32| *pid != std::process::id() && Some(*pid) != parent;
    let pids = process::all().into_iter().filter(is_other).collect();
    let device = device.to_owned();
    let serves = move |it: &Process| connections(it).contains(&device);
    let answers = ask_all(pids, BRIEF, is_trusted_process, serves);
    let those = |told: Option<bool>| {
        let which =
            answers.iter().filter(move |it| it.told == told && (it.counts || told.is_some()));
        which.map(|it| it.pid).filter(|it| process::lives(*it)).collect()
    };
    (those(Some(true)), those(None))
}

/// The devices of the file systems that a process serves. A connection that has ended, as far as
/// the kernel lets this process see that, has none any more: its number may be another's by now.
pub fn connections_of(pid: u32) -> Vec<String> {
    ask(pid, connections).unwrap_or_default()
}

/// A descriptor is asked what it is, and not where it leads: the kernel waits for that.
fn connections(process: &Process) -> Vec<String> {
    let told = |info: PathBuf| {
        let device = device(&fs::read_to_string(&info).ok()?)?;
        let copy = process.descriptor(info.file_name()?.to_str()?);
        copy.is_none_or(|copy| is_connected(&copy)).then_some(device)
    };
    process.list("fdinfo").into_iter().filter_map(told).collect()
}

/// Whether a connection still leads to a file system.
pub fn is_connected(connection: &OwnedFd) -> bool {
    let mut asked = [PollFd::new(connection, PollFlags::empty())];
    let answered = poll(&mut asked, Some(&Timespec::default()));
    answered.is_ok() && !asked[0].revents().contains(PollFlags::ERR)
}

/// The device that the kernel tells of a connection, with its parts as it has them in one number.
fn device(fdinfo: &str) -> Option<String> {
    const MINOR_BITS: u32 = 20;
    let told = fdinfo.lines().find_map(|line| line.strip_prefix("fuse_connection:"))?;
    let number: u32 = told.trim().parse().ok()?;
    Some(format!("{}:{}", number >> MINOR_BITS, number & ((1 << MINOR_BITS) - 1)))
}

#[cfg(test)]
mod tests;

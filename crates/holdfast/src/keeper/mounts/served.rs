//! Who serves what is mounted.
//!
//! Promise: a process that has the connection behind a FUSE file system open is found, where the
//! kernel tells which connection a descriptor is. Where it does not, nobody is, nor where the
//! connection has ended: a connection that was there before may have had the same number.
//! Never: counts this process, or who started it and may keep descriptors for it; waits for a
//! server that does not answer.

use super::{Mount, SHOWN_MAX, all_mounts, leads_to, our_mount_at};
use crate::exit::Exit;
use crate::problem::{Outcome, Problem};
use holdfast_io::{Shown, process};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fstatfs, open};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, getppid, pidfd_getfd, pidfd_open};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// How long a server may take to answer that it is there.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the kernel calls a descriptor of a connection.
const CONNECTION: &str = "/dev/fuse";

/// What is mounted over a connection. Where the kernel tells, it is asked and not the path.
pub(crate) fn mount_of(connection: &OwnedFd, point: &Path, source: &str) -> Option<Mount> {
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

/// Refuses what somebody else serves; `but` is no somebody else.
pub(crate) fn refuse_served(what: &str, mount: &Mount, but: Option<u32>) -> Outcome<()> {
    let servers = servers_of(&mount.device);
    let is_ours = servers.iter().any(|pid| Some(*pid) == but);
    if servers.is_empty() || is_ours || has_ended(&mount.point) {
        return Ok(());
    }
    let (point, who) = (Shown::name(&mount.point), process::all_named(&servers, SHOWN_MAX));
    let why = format!("{who} serves what is mounted at {point}");
    let remedy = "unmount it with the configuration or program that mounted it, or set another \
                  mount";
    Err(Problem::new(Exit::InUse, what, why, remedy))
}

/// Whether the connection behind a mount is known to have ended. A server that stands still is
/// asked in vain, by a thread that waits for it.
pub(super) fn has_ended(point: &Path) -> bool {
    let (answers, answer) = mpsc::channel();
    let point = point.to_owned();
    std::thread::spawn(move || {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let asked = open(point, flags, Mode::empty()).and_then(|root| fstatfs(&root));
        let _nobody_waits = answers.send(asked.err() == Some(Errno::NOTCONN));
    });
    answer.recv_timeout(PATIENCE).unwrap_or(false)
}

/// The processes that serve the FUSE file system with this device.
fn servers_of(device: &str) -> Vec<u32> {
    let parent = getppid().map(|parent| parent.as_raw_nonzero().get().cast_unsigned());
    let is_other = |pid: &u32| *pid != std::process::id() && Some(*pid) != parent;
    let serves = |pid: &u32| connections_of(*pid).iter().any(|of| of == device);
    process::all()
        .into_iter()
        .filter(is_other)
        .filter(serves)
        .filter(|it| process::lives(*it))
        .collect()
}

/// The devices of the file systems that a process serves. A connection that has ended, as far as
/// the kernel lets this process see that, has none any more: its number may be another's by now.
pub(crate) fn connections_of(pid: u32) -> Vec<String> {
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let copied = |number: &str| {
        pidfd_getfd(process.as_ref()?, number.parse().ok()?, PidfdGetfdFlags::empty()).ok()
    };
    let has_ended = |number: &str| copied(number).is_some_and(|copy| !is_connected(&copy));
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let is_connection = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|to| to == Path::new(CONNECTION))
    };
    let told = |entry: fs::DirEntry| {
        let number = entry.file_name().into_string().ok()?;
        let told = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
        device(&told).filter(|_| !has_ended(&number))
    };
    open.filter(is_connection).filter_map(told).collect()
}

/// Whether a connection still leads to a file system.
pub(crate) fn is_connected(connection: &OwnedFd) -> bool {
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

//! Who has something on this machine: memory, a directory, a lock.
//!
//! Promise: a process is named for what the kernel says that it has, and one of ours is told from a
//! stranger by its user as well: anybody can call a process so.
//! Never: waits for whoever has it, or takes it.

use crate::mounts::leads_to;
use crate::processes::{Process, ask, is_trusted_process};
use holdfast_io::Shown;
use holdfast_io::private::{self, is_trusted};
use holdfast_io::process;
use holdfast_memory::{Medium, Region};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What the kernel calls a keeper and every command, whatever the file of the program is called.
pub const COMMAND_NAME: &str = "holdfast";

/// What the kernel calls a front end, which people look for in the list of processes.
pub const FRONT_END_NAME: &str = "holdfast-front";

/// What the kernel calls a server.
pub const SERVER_NAME: &str = "holdfast-server";

/// Has the kernel call this process so: by that its kind is known to others of ours, and to people.
pub fn be_called(name: &str) {
    // Without it whoever looks finds less, and nothing else is wrong.
    let _ = std::fs::write("/proc/self/comm", name);
}

/// Sends a signal to a process that a region tells of, if it still is that one: `still` is asked
/// once its number can no longer become another's. False if it has ended.
pub fn signal(pid: u32, signal: Signal, still: impl FnOnce() -> bool) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let held = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    held.is_some_and(|held| still() && pidfd_send_signal(held, signal).is_ok())
}

/// Whether a process maps the region: its number alone may belong to another by now. Another user's
/// does not, and is not asked; one that could and does not tell is taken for one that does.
pub fn is_mapped_by(medium: &Medium, pid: u32) -> bool {
    let Some(path) = medium.path() else { return false };
    let owner = path.metadata().ok().map(|found| found.uid());
    if !process::owner(pid).is_some_and(|of| is_trusted(of) || owner == Some(of)) {
        return false;
    }
    let path = leads_to(path);
    let maps_it =
        move |it: &Process| it.mappings().into_iter().flatten().any(|part| part.path == path);
    ask(pid, maps_it).unwrap_or(true)
}

/// Who has something, and what ends that, for people.
pub type Holder = (String, String);

/// Who has the region on a medium, if anybody does; what it finds free stays so.
pub fn holder(medium: &Medium) -> Option<Holder> {
    let file = private::open(medium.path()?, false).ok()?;
    is_locked(&file).then(|| holder_of(medium, &file))
}

/// Whether somebody has locked a file or directory. The lock is not kept, also by no child that
/// another thread starts just now.
pub fn is_locked(file: impl AsFd) -> bool {
    let is_free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    if is_free {
        let _ours = flock(&file, FlockOperation::Unlock);
    }
    !is_free
}

/// What ends a front end or a server, which goes on for its users alone when its keeper is gone.
const THEIR_USE: &str = "if its keeper runs, `holdfast shutdown` ends both; else leave that \
                         process alone: it ends by itself with the last of its users; `holdfast \
                         umount` its volumes, and end the clients of its logs, disks and tables";

/// Whether a process is a front end or a server, which a keeper has started.
fn is_one_of_ours(pid: u32) -> bool {
    let is_one = |name: OsString| name == FRONT_END_NAME || name == SERVER_NAME;
    process::name(pid).is_some_and(is_one) && is_trusted_process(pid)
}

/// Whoever has locked the file of a region. Its own word for it may be of a process that is gone.
fn holder_of(medium: &Medium, file: &File) -> Holder {
    let pid = Region::observe(medium).ok().map(|seen| seen.server_pid());
    match pid.filter(|pid| is_mapped_by(medium, *pid)) {
        Some(pid) if is_one_of_ours(pid) => {
            (format!("process {pid} serves the region"), THEIR_USE.to_owned())
        }
        Some(pid) => (
            format!("process {pid} serves the region"),
            format!("end its use, or stop process {pid}"),
        ),
        None => locked_by(file, medium.path().unwrap_or(Path::new("its memory"))),
    }
}

/// Whoever has locked this, where no process says that it does.
pub fn locked_by(file: impl AsFd, path: &Path) -> Holder {
    let path = path.display();
    match stranger_with(file) {
        Some(who) => (format!("{who} has locked {path}"), "end that process".to_owned()),
        None => (
            format!("somebody who is not seen has locked {path}"),
            format!("see who has it open: `fuser {path}`"),
        ),
    }
}

/// Who has the lock on this, if it is none of our programs: anybody who can open a file can lock
/// it.
pub(crate) fn stranger_with(file: impl AsFd) -> Option<String> {
    let found = rustix::fs::fstat(file).ok()?;
    let pid = locked_as(&place_of(found.st_dev, found.st_ino))?;
    let name = process::name(pid)?;
    let uid = process::owner(pid)?;
    let is_ours = name.as_bytes().starts_with(b"holdfast") && private::is_trusted(uid);
    (!is_ours).then(|| format!("process {pid} ({}) of user {uid}", Shown::name(&name)))
}

/// How the kernel's table of locks names a file.
pub(crate) fn place_of(device: u64, inode: u64) -> String {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    format!("{major:02x}:{minor:02x}:{inode}")
}

/// Who has locked what the kernel's table names so.
pub(crate) fn locked_as(place: &str) -> Option<u32> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| locker(line, place))
}

/// Whose lock of that place a line tells of:
/// `1: FLOCK ADVISORY WRITE 123 fd:01:456 0 EOF`, without what waits: `1: -> FLOCK ...`
fn locker(line: &str, place: &str) -> Option<u32> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, "FLOCK", _, _, pid, at, ..] = *fields else { return None };
    (at == place).then(|| pid.parse().ok()).flatten()
}

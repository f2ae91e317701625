//! What processes of Holdfast have taken, and which of it lies in which.
//!
//! Promise: of two homes or logs of which one lies in the other, only one is taken at a time, by
//! whatever keeper, run or command, and by whatever path, mount or mount namespace each was
//! reached. The kernel is asked who has which lock, so nothing is left behind by a death.
//! Never: reads a directory: a home of a million files costs what an empty one does. Sees what
//! runs in a PID namespace that this process does not see.

use crate::mounts::{Mount, all_mounts, leads_to, mounts_of};
use crate::places::Within;
use crate::processes::{
    Answer, BRIEF, HELD_UP, LONG, Process, ask_all, ask_one, is_trusted_process,
};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::process;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// How many processes are named.
const SHOWN_MAX: usize = 5;

/// Something that a process has locked for itself.
#[derive(Debug)]
struct Taken {
    path: PathBuf,
    within: Within,
}

/// Refuses what was just taken if something in it is taken too, or something around it. Who takes
/// the other at the same moment looks behind its own lock as well, so one of the two is refused.
pub(super) fn refuse_nested(key: &str, path: &Path, taken: &OwnedFd) -> Outcome<()> {
    let mounts = all_mounts();
    let number = taken.as_raw_fd().to_string();
    let what = format!("taking {key} {}", path.display());
    let as_number = mounts.clone();
    let own_pid = std::process::id();
    let own = ask_one(own_pid, LONG, move |it| taken_as(it, &number, &as_number));
    let Some(own) = own.ok_or_else(|| hidden(&what, own_pid))? else { return Ok(()) };
    let look = move |it: &Process| taken_by(it, &mounts);
    let (mut found, mut silent) = (None, None);
    for Answer { pid, told, .. } in ask_all(our_processes().collect(), LONG, |_| true, look) {
        let Some(taken) = told else {
            silent = silent.or(Some(pid));
            continue;
        };
        let nested = taken.into_iter().find(|it| own.is_in(it) || it.is_in(&own));
        found = found.or(nested.map(|other| (pid, other)));
    }
    let Some((pid, other)) = found else {
        return silent.map_or(Ok(()), |pid| Err(hidden(&what, pid)));
    };
    let (inner, outer) = if own.is_in(&other) { (&own, &other) } else { (&other, &own) };
    let why = format!(
        "{} lies inside {}, and {} has {}",
        inner.path.display(),
        outer.path.display(),
        process::named(pid),
        other.path.display()
    );
    let remedy = format!("give that volume back first, or name another {key}");
    Err(Problem::new(Exit::InUse, what, why, remedy))
}

fn hidden(what: &str, pid: u32) -> Problem {
    let why = format!("{} does not tell what it has taken", process::named(pid));
    Problem::new(Exit::InUse, what, why, HELD_UP)
}

/// The processes of ours that have this locked, for people.
pub(super) fn holders(locked: &OwnedFd) -> Option<String> {
    let id = id_of(locked)?;
    let has_it =
        move |it: &Process| locks_of(it).iter().any(|(_, told)| lock_id(told) == Some(&*id));
    let answers = ask_all(our_processes().collect(), BRIEF, |_| true, has_it);
    let pids: Vec<u32> =
        answers.into_iter().filter(|it| it.told == Some(true)).map(|it| it.pid).collect();
    (!pids.is_empty()).then(|| process::all_named(&pids, SHOWN_MAX))
}

/// The processes of ours that have locked what is at this path, whatever is mounted over it.
pub(super) fn holders_at(path: &Path) -> Vec<u32> {
    let path = leads_to(path);
    let has_it = move |it: &Process| {
        let at = |number: &str| fs::read_link(it.at("fd").join(number)).ok();
        locks_of(it).iter().any(|(number, _)| at(number).as_ref() == Some(&path))
    };
    let answers = ask_all(our_processes().collect(), BRIEF, |_| true, has_it);
    answers.into_iter().filter(|it| it.told == Some(true)).map(|it| it.pid).collect()
}

/// Those that call themselves so and belong to somebody who decides here.
fn our_processes() -> impl Iterator<Item = u32> {
    let is_ours = move |pid: &u32| {
        process::name(*pid).is_some_and(|name| name.as_encoded_bytes().starts_with(b"holdfast"))
            && is_trusted_process(*pid)
    };
    process::all().into_iter().filter(is_ours)
}

fn taken_by(process: &Process, mounts: &[Mount]) -> Vec<Taken> {
    let of_its_own = mounts_of(process);
    let all: Vec<Mount> = mounts.iter().chain(&of_its_own).cloned().collect();
    locks_of(process).iter().filter_map(|(number, _)| taken_as(process, number, &all)).collect()
}

/// The descriptors of a process on which there is a lock, and what the kernel tells of them.
fn locks_of(process: &Process) -> Vec<(String, String)> {
    let told = |info: PathBuf| {
        let text = fs::read_to_string(&info).ok()?;
        lock_id(&text).is_some().then_some((info.file_name()?.to_str()?.to_owned(), text))
    };
    process.list("fdinfo").into_iter().filter_map(told).collect()
}

fn taken_as(process: &Process, number: &str, mounts: &[Mount]) -> Option<Taken> {
    let tell = || fs::read_to_string(process.at("fdinfo").join(number)).ok();
    let told = tell()?;
    let path = fs::read_link(process.at("fd").join(number)).ok()?;
    // Its number may be another descriptor's by now, of something that nobody has locked.
    if lock_id(&told).is_none() || lock_id(&told) != lock_id(&tell()?) {
        return None;
    }
    // That of a keeper, which is no part of a volume.
    if path.extension().is_some_and(|extension| extension == "lock") {
        return None;
    }
    let number_of = |line: &str| line.strip_prefix("mnt_id:")?.trim().parse::<u64>().ok();
    let of = told.lines().find_map(number_of)?;
    let mount = mounts.iter().find(|mount| mount.number == of)?;
    let within = (mount.device.clone(), mount.root.join(path.strip_prefix(&mount.point).ok()?));
    Some(Taken { path, within })
}

/// `lock: 1: FLOCK ADVISORY WRITE 123 fd:01:456 0 EOF`
pub fn lock_id(told: &str) -> Option<&str> {
    told.lines().filter_map(|line| line.strip_prefix("lock:")).find_map(lock_place)
}

fn lock_place(line: &str) -> Option<&str> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let is_flock = fields.next() == Some("FLOCK") && fields.nth(1) == Some("WRITE");
    fields.nth(1).filter(|_| is_flock)
}

fn id_of(file: &OwnedFd) -> Option<String> {
    let found = rustix::fs::fstat(file).ok()?;
    let (major, minor) = (rustix::fs::major(found.st_dev), rustix::fs::minor(found.st_dev));
    Some(format!("{major:02x}:{minor:02x}:{}", found.st_ino))
}

impl Taken {
    /// Whether it lies below the other, and is not the same.
    fn is_in(&self, other: &Taken) -> bool {
        self.within.0 == other.within.0
            && self.within.1 != other.within.1
            && self.within.1.starts_with(&other.within.1)
    }
}

#[cfg(test)]
mod tests;

//! Who uses a home beside its volume.
//!
//! Promise: a home that a program has open, stands in, or has mapped, or that a database's own file
//! says is running, is refused with the names of who it is; so is one of which a part is mounted
//! elsewhere.
//! Never: waits for a file system that somebody else has open; counts Holdfast's own processes, or
//! a shell that only stands where this was typed.

use crate::exit::Exit;
use crate::keeper::homes::refuse_mounted_parts;
use crate::keeper::mounts::leads_to;
use crate::keeper::unasked;
use crate::problem::{Outcome, Problem};
use holdfast_io::process;
use rustix::fs::{FileType, Stat, fstat, makedev};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The file by which a PostgreSQL says that it runs; its first line is a process.
const PID_FILE: &str = "postmaster.pid";

/// How many are named.
const SHOWN_MAX: usize = 5;

/// Refuses a home that somebody else uses.
pub(crate) fn refuse_in_use(what: &str, (path, home): (&Path, &OwnedFd)) -> Outcome<()> {
    let failed = |error| Problem::new(Exit::Failed, what, error, "try again");
    refuse_mounted_parts(what, (path, home))?;
    let users = users_of(path, &fstat(home).map_err(failed)?);
    if users.is_empty() {
        return Ok(());
    }
    let named = process::all_named(&users, SHOWN_MAX);
    let why = format!("home {} is in use by {named}", path.display());
    Err(Problem::new(Exit::InUse, what, why, "stop them, then try again"))
}

/// Processes that use it, by number.
fn users_of(path: &Path, home: &Stat) -> Vec<u32> {
    let place = Place {
        path: leads_to(path),
        is_directory: FileType::from_raw_mode(home.st_mode) == FileType::Directory,
        home: *home,
    };
    let ancestors = ancestors();
    let uses = |pid: &u32| place.is_used_by(*pid, ancestors.contains(pid));
    let mut users: Vec<u32> = process::all()
        .into_iter()
        .filter(|pid| *pid != std::process::id())
        .filter(uses)
        .filter(|pid| is_no_holdfast(*pid))
        .collect();
    users.extend(place.postgres().filter(|pid| !users.contains(pid)));
    users
}

fn is_no_holdfast(pid: u32) -> bool {
    process::name(pid).is_some_and(|name| !name.as_bytes().starts_with(b"holdfast"))
}

/// Who started this process, and who started those.
fn ancestors() -> Vec<u32> {
    let parent = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        line.trim().parse::<u32>().ok().filter(|pid| *pid > 1)
    };
    std::iter::successors(parent(std::process::id()), |pid| parent(*pid)).collect()
}

/// A home as programs may have it open.
struct Place {
    path: PathBuf,
    is_directory: bool,
    home: Stat,
}

impl Place {
    fn is_used_by(&self, pid: u32, is_ancestor: bool) -> bool {
        let of = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
        let open = fs::read_dir(of("fd")).into_iter().flatten().flatten();
        open.map(|entry| entry.path()).any(|link| self.has(&link))
            || (!is_ancestor && self.has(&of("cwd")))
            || self.has(&of("root"))
            || self.is_mapped_by(pid)
    }

    /// Whether the link leads into the home itself, and not into what is mounted on it.
    fn has(&self, link: &Path) -> bool {
        let Some(seen) = unasked::behind(link) else { return false };
        let is_on_its_device = unasked::device_of(&seen) == self.home.st_dev;
        match self.is_directory {
            true => {
                is_on_its_device && fs::read_link(link).is_ok_and(|to| to.starts_with(&self.path))
            }
            false if self.home.st_rdev != 0 => {
                makedev(seen.stx_rdev_major, seen.stx_rdev_minor) == self.home.st_rdev
            }
            false => is_on_its_device && seen.stx_ino == self.home.st_ino,
        }
    }

    fn is_mapped_by(&self, pid: u32) -> bool {
        let links = fs::read_dir(format!("/proc/{pid}/map_files")).into_iter().flatten().flatten();
        let into_home =
            |link: &PathBuf| fs::read_link(link).is_ok_and(|to| to.starts_with(&self.path));
        links.map(|entry| entry.path()).filter(into_home).any(|link| self.has(&link))
    }

    /// A PostgreSQL that runs in the home, or in the directory that the home is a part of.
    fn postgres(&self) -> Option<u32> {
        let places = [Some(&*self.path), self.path.parent()];
        let running = |place: &Path| {
            let text = fs::read_to_string(place.join(PID_FILE)).ok()?;
            let pid: u32 = text.lines().next()?.trim().parse().ok()?;
            let stands_in = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
            (stands_in == place).then_some(pid)
        };
        places.into_iter().flatten().filter(|_| self.is_directory).find_map(running)
    }
}

#[cfg(test)]
mod tests;

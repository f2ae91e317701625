//! Who uses a home beside its volume.
//!
//! Promise: a home that a program has open, stands in, or has mapped, or that a database's own file
//! says is running, is refused with the names of who it is; so is one of which a part is mounted
//! elsewhere, and one that a process does not tell of that could have got at it.
//! Never: waits for a file system that somebody else has open, or for a process longer than for a
//! moment; lets who could not have got at the home keep it from being taken; counts Holdfast's own
//! processes, or a shell that only stands where this was typed.

use crate::bounded;
use crate::exit::Exit;
use crate::keeper::homes::refuse_mounted_parts;
use crate::keeper::lock::lock_id;
use crate::keeper::mounts::leads_to;
use crate::keeper::unasked;
use crate::problem::{Outcome, Problem};
use holdfast_io::private::has_access_list;
use holdfast_io::process;
use reach::Reach;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, makedev, open};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod reach;

/// The file by which a PostgreSQL says that it runs; its first line is a process.
const PID_FILE: &str = "postmaster.pid";

/// As much of it as is read.
const PID_BYTES_MAX: u64 = 64;

/// How many are named.
const SHOWN_MAX: usize = 5;

/// How long a process that could have got at a home may take to tell what it has of it.
const SILENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How many that could not have got at a home, and do not tell what they have, are waited for.
const SILENT_STRANGERS_MAX: usize = 4;

/// Refuses a home that somebody else uses.
pub(crate) fn refuse_in_use(what: &str, (path, home): (&Path, &OwnedFd)) -> Outcome<()> {
    let failed = |error| Problem::new(Exit::Failed, what, error, "try again");
    refuse_mounted_parts(what, (path, home))?;
    let place = Place::of(path, home.as_fd()).map_err(failed)?;
    let mut found = place.users();
    let running = place.postgres().filter(|pid| !found.users.contains(pid));
    found.users.extend(running);
    found.refuse(what, path)
}

/// The same once it is barred, and something may be mounted over it: what is found is what came in
/// between. `mode` is the one that it had before.
pub(crate) fn refuse_used(
    what: &str,
    (path, home): (&Path, BorrowedFd<'_>),
    mode: Option<u32>,
) -> Outcome<()> {
    let failed = |error| Problem::new(Exit::Failed, what, error, "try again");
    let mut place = Place::of(path, home).map_err(failed)?;
    place.home.st_mode |= mode.unwrap_or_default();
    place.users().refuse(what, path)
}

impl Found {
    fn refuse(self, what: &str, path: &Path) -> Outcome<()> {
        let Found { users, silent } = self;
        let home = path.display();
        let (why, remedy) = if !users.is_empty() {
            let named = process::all_named(&users, SHOWN_MAX);
            (format!("home {home} is in use by {named}"), "stop them, then try again")
        } else if let Some(pid) = silent {
            let who = process::named(pid);
            let why = format!("home {home} may be in use: {who} does not tell what it has mapped");
            (why, "its memory is held up; end that process, then try again")
        } else {
            return Ok(());
        };
        Err(Problem::new(Exit::InUse, what, why, remedy))
    }
}

/// Who uses a home.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// Processes, by number.
    users: Vec<u32>,
    /// One that may, and does not tell.
    silent: Option<u32>,
}

/// What a process tells that is given time: a large one that ends, or a busy machine, takes some.
fn told_in_time(pid: u32, look: impl Fn() -> bool + Clone + Send + 'static) -> Option<bool> {
    let begun = Instant::now();
    loop {
        match bounded::look_at(pid, look.clone()) {
            Ok(told) => return Some(told),
            Err(_) if begun.elapsed() >= SILENCE => return None,
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// The beginning of a file, if it is one: anybody may put something else there that waits for
/// somebody.
fn read_plain(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open(path, flags | OFlags::NOFOLLOW, Mode::empty()).ok()?);
    let (is_file, mut bytes) = (file.metadata().ok()?.is_file(), Vec::new());
    file.take(PID_BYTES_MAX).read_to_end(&mut bytes).ok().filter(|_| is_file)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
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
#[derive(Clone)]
struct Place {
    path: PathBuf,
    is_directory: bool,
    home: Stat,
    has_list: bool,
}

impl Place {
    /// What is at this path now.
    #[cfg(test)]
    fn at(path: &Path) -> Place {
        let how = OFlags::PATH | OFlags::CLOEXEC;
        Place::of(path, open(path, how, Mode::empty()).expect("it is there").as_fd())
            .expect("it is one")
    }

    fn of(path: &Path, home: BorrowedFd<'_>) -> io::Result<Place> {
        let (path, stat) = (leads_to(path), fstat(home)?);
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let has_list =
            has_access_list(&PathBuf::from(format!("/proc/self/fd/{}", home.as_raw_fd())));
        Ok(Place { path, is_directory, home: stat, has_list })
    }

    /// Looks at all processes.
    fn users(&self) -> Found {
        let reach = Reach::of(self);
        let place = Arc::new(self.clone());
        let (ancestors, own) = (ancestors(), std::process::id());
        let (mut found, mut silent_strangers) = (Found::default(), 0);
        for pid in process::all().into_iter().filter(|pid| *pid != own && is_no_holdfast(*pid)) {
            let (may_map, is_ancestor) = (reach.is_open_to_process(pid), ancestors.contains(&pid));
            if !may_map && silent_strangers >= SILENT_STRANGERS_MAX {
                continue;
            }
            let asked = place.clone();
            let look =
                move || asked.is_used_by(pid, is_ancestor) || may_map && asked.is_mapped_by(pid);
            let told = match may_map {
                true => told_in_time(pid, look),
                false => bounded::look_at(pid, look).ok(),
            };
            match told {
                Some(true) => found.users.push(pid),
                Some(false) => {}
                // One is reason enough.
                None if may_map => {
                    found.silent = Some(pid);
                    break;
                }
                None => silent_strangers += 1,
            }
        }
        found
    }

    fn is_used_by(&self, pid: u32, is_ancestor: bool) -> bool {
        let of = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
        let open = fs::read_dir(of("fd")).into_iter().flatten().flatten();
        open.map(|entry| entry.path()).any(|link| self.has(&link) && !self.is_kept_by(&link))
            || (!is_ancestor && self.has(&of("cwd")))
            || self.has(&of("root"))
    }

    /// Whether the descriptor is the one with the lock on the home: whoever takes it may be called
    /// as he likes, and has a service manager keep it.
    fn is_kept_by(&self, link: &Path) -> bool {
        let number = link.file_name().unwrap_or_default();
        let told = link.ancestors().nth(2).map(|process| process.join("fdinfo").join(number));
        let told = told.and_then(|at| fs::read_to_string(at).ok()).unwrap_or_default();
        let inode = format!(":{}", self.home.st_ino);
        lock_id(&told).is_some_and(|id| id.ends_with(&inode))
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
            let text = read_plain(&place.join(PID_FILE))?;
            let pid: u32 = text.lines().next()?.trim().parse().ok()?;
            let stands_in = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
            (stands_in == place).then_some(pid)
        };
        places.into_iter().flatten().filter(|_| self.is_directory).find_map(running)
    }
}

#[cfg(test)]
mod tests;

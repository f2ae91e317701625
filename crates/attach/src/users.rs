//! Who uses a home beside its volume.
//!
//! Promise: a home that a program has open, stands in, or has mapped, or that a database's own file
//! says is running, is refused with the names of who it is, also where one thread alone has it, or
//! it is open in a mount that is mounted nowhere; so is one of which a part is mounted elsewhere,
//! and one that a process does not tell of that could have got at it.
//! Never: waits for a file system that somebody else has open, or for a process longer than for a
//! moment; lets who could not have got at the home keep it from being taken; counts Holdfast's own
//! processes, or a shell that only stands where this was typed.

use crate::homes::refuse_mounted_parts;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::private::has_access_list;
use holdfast_io::process;
use holdfast_machine::lock::lock_id;
use holdfast_machine::mounts::leads_to;
use holdfast_machine::processes::{Answer, HELD_UP, LONG, Process, ask, ask_all};
use holdfast_machine::unasked;
use nowhere::{Nowhere, unseen};
use reach::Reach;
use rustix::fs::{FileType, Mode, OFlags, Stat, Statx, fstat, makedev, open, openat};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::iter;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod nowhere;
mod reach;

/// The file by which a PostgreSQL says that it runs; its first line is a process.
const PID_FILE: &str = "postmaster.pid";

/// As much of it as is read.
const PID_BYTES_MAX: u64 = 64;

/// How many are named.
const SHOWN_MAX: usize = 5;

/// Refuses a home that somebody else uses.
pub fn refuse_in_use(what: &str, (path, home): (&Path, &OwnedFd)) -> Outcome<()> {
    let failed = |error| Problem::new(Exit::Failed, what, error, "try again");
    let place = Place::of(path, home.as_fd()).map_err(failed)?;
    let reach = place.reach();
    refuse_mounted_parts(what, (path, home), |pid| reach.is_open_to_process(pid))?;
    let mut found = place.users();
    let running = place.postgres().filter(|pid| !found.users.contains(pid));
    found.users.extend(running);
    found.refuse(what, path)
}

/// The same once it is barred, and something may be mounted over it: what is found is what came in
/// between. `mode` is the one that it had before.
pub fn refuse_used(
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
            (format!("home {home} may be in use: {who} does not tell what it has of it"), HELD_UP)
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

/// What one process has of a home.
#[derive(Default)]
struct Has {
    uses: bool,
    /// Mounts of the home's file system that neither it nor we see, in which it has something open.
    nowhere: BTreeSet<u64>,
}

impl Has {
    fn add(&mut self, other: Has) {
        self.uses |= other.uses;
        self.nowhere.extend(other.nowhere);
    }
}

/// Those that use it, or have something that may be of it in a mount that nobody sees.
fn users_of(answers: Vec<Answer<Has>>) -> Vec<u32> {
    let all = answers.iter().filter_map(|it| it.told.as_ref());
    let unseen = unseen(all.flat_map(|has| has.nowhere.clone()).collect());
    let uses = |has: &Has| has.uses || !has.nowhere.is_disjoint(&unseen);
    let told = answers.into_iter().filter_map(|it| Some((it.pid, it.told?)));
    told.filter(|(_, has)| uses(has)).map(|(pid, _)| pid).collect()
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
    let parent = |pid: u32| process::parent(pid).filter(|parent| *parent > 1);
    std::iter::successors(parent(std::process::id()), |pid| parent(*pid)).collect()
}

/// A home as programs may have it open.
#[derive(Clone)]
struct Place {
    path: PathBuf,
    is_directory: bool,
    home: Stat,
    opened: Arc<OwnedFd>,
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
        let opened = Arc::new(home.try_clone_to_owned()?);
        Ok(Place { path, is_directory, home: stat, opened, has_list })
    }

    /// Who could have got at it.
    fn reach(&self) -> Reach {
        Reach::of(&self.path, &self.home, self.has_list)
    }

    /// Looks at all processes. What is mapped, and what is open in mounts that are nowhere, counts
    /// of those alone that could have got at it.
    fn users(&self) -> Found {
        let reach = self.reach();
        let own = std::process::id();
        let pids = process::all().into_iter().filter(|pid| *pid != own && is_no_holdfast(*pid));
        let pids: Vec<u32> = pids.collect();
        let open_to = pids.iter().copied().filter(|pid| reach.is_open_to_process(*pid));
        let may_map: Arc<BTreeSet<u32>> = Arc::new(open_to.collect());
        let (place, ancestors, mapping) = (self.clone(), ancestors(), may_map.clone());
        let ours = nowhere::ours();
        let look = move |it: &Process| {
            let (apart, is_ancestor) = (it.apart(), ancestors.contains(&it.pid()));
            let of = |task| place.has_of(task, is_ancestor, &ours);
            let mut has = Has::default();
            iter::once(it).chain(&apart).for_each(|task| has.add(of(task)));
            let may_have = mapping.contains(&it.pid());
            has.nowhere.retain(|_| may_have);
            let mut tasks = iter::once(it).chain(&apart).filter(|_| may_have);
            has.uses = has.uses || tasks.any(|task| place.is_mapped_by(task));
            has
        };
        let answers = ask_all(pids, LONG, |pid| may_map.contains(&pid), look);
        let silent = answers.iter().find(|it| it.counts && it.told.is_none()).map(|it| it.pid);
        Found { users: users_of(answers), silent }
    }

    fn has_of(&self, task: &Process, is_ancestor: bool, ours: &BTreeSet<u64>) -> Has {
        let mut nowhere = Nowhere::of(task, (&self.path, self.opened.as_fd()), ours);
        let mut has = |link: &Path| self.has(link, |seen| nowhere.look(link, seen));
        let mut open = task.list("fd").into_iter();
        let uses = open.any(|link| has(&link) && !self.is_kept_by(&link))
            || (!is_ancestor && has(&task.at("cwd")))
            || has(&task.at("root"));
        Has { uses, nowhere: nowhere.found() }
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

    /// Whether the link leads into the home itself, and not into what is mounted on it. What leads
    /// elsewhere on the file system of a home that is a directory may do so in a mount of its own,
    /// which `elsewhere` finds out.
    fn has(&self, link: &Path, elsewhere: impl FnOnce(&Statx)) -> bool {
        let Some(seen) = unasked::behind(link) else { return false };
        let is_on_its_device = unasked::device_of(&seen) == self.home.st_dev;
        match self.is_directory {
            true if is_on_its_device => {
                let is_below = match fs::read_link(link) {
                    Ok(to) => to.starts_with(&self.path),
                    Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                        self.may_be_above(link, &seen)
                    }
                    Err(_) => false,
                };
                (!is_below).then(|| elsewhere(&seen));
                is_below
            }
            true => false,
            false if self.home.st_rdev != 0 => {
                makedev(seen.stx_rdev_major, seen.stx_rdev_minor) == self.home.st_rdev
            }
            false => is_on_its_device && seen.stx_ino == self.home.st_ino,
        }
    }

    /// Whether the home is above a directory whose name is too long to be told. What is above a
    /// file nobody can tell.
    fn may_be_above(&self, link: &Path, seen: &Statx) -> bool {
        if FileType::from_raw_mode(seen.stx_mode.into()) != FileType::Directory {
            return true;
        }
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(mut here) = open(link, how, Mode::empty()) else { return true };
        let of = |found: Stat| (found.st_dev, found.st_ino);
        let id = |directory: &OwnedFd| fstat(directory).ok().map(of);
        let (mut at, home) = (id(&here), Some(of(self.home)));
        while at != home {
            let Ok(above) = openat(&here, "..", how, Mode::empty()) else { return true };
            let next = id(&above);
            if next == at {
                return false;
            }
            (here, at) = (above, next);
        }
        true
    }

    /// The table of what is mapped is read in one pass; only what seems to be of the home is looked
    /// at. One entry of `map_files` costs more than a hundred lines.
    fn is_mapped_by(&self, process: &Process) -> bool {
        let links = process.at("map_files");
        let mut into_home =
            process.mappings().into_iter().flatten().filter(|it| it.path.starts_with(&self.path));
        into_home.any(|it| self.has(&links.join(it.range), |_| ()))
    }

    /// A PostgreSQL that runs in the home, or in the directory that the home is a part of.
    fn postgres(&self) -> Option<u32> {
        let places = [Some(&*self.path), self.path.parent()];
        let running = |place: &Path| {
            let text = read_plain(&place.join(PID_FILE))?;
            let pid: u32 = text.lines().next()?.trim().parse().ok()?;
            let stands_in = ask(pid, |it| it.link("cwd"))??;
            (stands_in == place).then_some(pid)
        };
        places.into_iter().flatten().filter(|_| self.is_directory).find_map(running)
    }
}

#[cfg(test)]
mod tests;

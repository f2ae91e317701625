//! What is in a home, or around it, that keeps it from being a volume's.
//!
//! Promise: something that no volume made at the name that volumes use, a directory of the home
//! that is mounted elsewhere, or is a layer of an overlay, in whatever namespace a process has, and
//! a home inside another one are refused by name; so is one whose file system does not keep what
//! programs are told.
//! Never: changes anything, but for a moment in the volume's own directory.

use crate::bond::Wearer;
use holdfast_config::Config;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::real::RealFiles;
use holdfast_io::{Files, process};
use holdfast_machine::mounts::views::{View, views};
use holdfast_machine::mounts::{Mount, all_mounts, leads_to};
use holdfast_machine::places::{Place, Within, within};
use holdfast_machine::processes::{HELD_UP, LONG};
use holdfast_volume::{namelessness, own, unfitness};
use overlays::overlay_of;
use rustix::fs::{FileType, StatVfsMountFlags, fstat, fstatvfs};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

mod overlays;

/// Refuses a home in which something that no volume made has the name that volumes use.
pub fn refuse_strange(what: &str, (path, home): (&Path, &OwnedFd)) -> Outcome<()> {
    let fault = directory(home).and_then(|files| files.map_or(Ok(None), |it| own::fault(&it)));
    let name = path.join(own::NAME);
    let fault = fault.map_err(|error| unseen(what, &name, &error))?;
    let Some(fault) = fault else { return Ok(()) };
    let why = format!("{} is not what a volume made there: {fault}", name.display());
    let remedy = "volumes keep what is their own by that name; move it away, then try again";
    Err(Problem::new(Exit::Usage, what, why, remedy))
}

/// Refuses a home whose file system does not keep what programs would be told that they have.
pub fn refuse_unfit(what: &str, (path, home): (&Path, &OwnedFd)) -> Outcome<()> {
    let look = |files: RealFiles| match unfitness(&files)? {
        Some(why) => Ok(Some(why)),
        None => namelessness(&files),
    };
    let found = directory(home).and_then(|files| files.map_or(Ok(None), look));
    let found = found.map_err(|error| unseen(what, path, &error))?;
    let Some(why) = found else { return Ok(()) };
    let why = format!("{} cannot be the home of a volume: {why}", path.display());
    Err(Problem::new(Exit::Usage, what, why, "name a home on ext4, XFS, Btrfs, F2FS or tmpfs"))
}

/// Refuses a home that takes no changes now: a new log would never come home.
pub fn refuse_unwritable(what: &str, (path, home): (&Path, &OwnedFd)) -> Outcome<()> {
    let mounted = fstatvfs(home).map_err(|error| unseen(what, path, &error.into()))?;
    if !mounted.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Ok(());
    }
    let why = format!("the file system of {} is mounted read-only", path.display());
    let remedy = "nothing was changed; mount it for writing, then try again";
    Err(Problem::new(Exit::Failed, what, why, remedy))
}

fn unseen(what: &str, place: &Path, error: &io::Error) -> Problem {
    let why = format!("{} cannot be looked at: {error}", place.display());
    Problem::new(Exit::Failed, what, why, "mend the disk of the home")
}

/// The files below a home, if it is a directory.
fn directory(home: &OwnedFd) -> io::Result<Option<RealFiles>> {
    let is_one = FileType::from_raw_mode(fstat(home)?.st_mode) == FileType::Directory;
    is_one.then(|| Ok(RealFiles::from_fd(home.try_clone()?))).transpose()
}

/// Refuses a home of which a part is mounted elsewhere: nothing bars who comes by that way.
/// `could_have` says of which processes it counts that they do not tell.
pub(crate) fn refuse_mounted_parts(
    what: &str,
    (path, opened): (&Path, &OwnedFd),
    could_have: impl Fn(u32) -> bool,
) -> Outcome<()> {
    let mounts = all_mounts();
    let Some(place) = within(&leads_to(path), &mounts) else { return Ok(()) };
    let Ok(Some(files)) = directory(opened) else { return Ok(()) };
    let home = path.display();
    let part_of = |mount: &Mount| part_at(mount, &place, &files);
    let in_use = |how: String, pid: Option<u32>| {
        let whose = pid.map_or(String::new(), |pid| format!(" of {}", process::named(pid)));
        let why = format!("home {home} is in use: {how}{whose}");
        Err(Problem::new(Exit::InUse, what, why, "unmount it there, or stop who has it; try again"))
    };
    let is_mounted = |(part, point): Part| format!("{part:?} in it is mounted at {point:?}");
    if let Some(part) = mounts.iter().find_map(part_of) {
        return in_use(is_mounted(part), None);
    }
    let (views, mut silent) = views(LONG, &could_have);
    let there = |it: &View| Some((it.mounts.iter().find_map(part_of)?, it.pids[0]));
    if let Some((part, pid)) = views.iter().find_map(there) {
        return in_use(is_mounted(part), Some(pid));
    }
    let found = fstat(opened).map_err(|error| unseen(what, path, &error.into()))?;
    for view in &views {
        match overlay_of(view, &found) {
            Ok(Some((layer, point))) => {
                let how = format!("{layer:?} in it is a layer of the overlay at {point:?}");
                return in_use(how, Some(view.pids[0]));
            }
            Ok(None) => {}
            Err(pid) => silent = silent.or(could_have(pid).then_some(pid)),
        }
    }
    let Some(pid) = silent else { return Ok(()) };
    let who = process::named(pid);
    let why = format!("home {home} may be in use: {who} does not tell what it sees mounted");
    Err(Problem::new(Exit::InUse, what, why, HELD_UP))
}

/// A part of the home, and where it is mounted.
type Part = (PathBuf, PathBuf);

fn part_at(mount: &Mount, place: &Within, files: &RealFiles) -> Option<Part> {
    let part = mount.root.strip_prefix(&place.1).ok().filter(|_| mount.device == place.0)?;
    // What is mounted at the home itself is barred as the home is.
    let is_below = !part.as_os_str().is_empty() && is_of(files, part);
    is_below.then(|| (part.to_owned(), mount.point.clone()))
}

/// What was removed, and a subvolume, are no part of the home.
fn is_of(files: &RealFiles, part: &Path) -> bool {
    match files.metadata(part) {
        Ok(_) => true,
        Err(error) => {
            error.kind() != io::ErrorKind::NotFound
                && Errno::from_io_error(&error) != Some(Errno::XDEV)
        }
    }
}

/// Refuses a home that lies inside the home of another volume, or around one.
pub fn refuse_nested(what: &str, name: &str, config: &Config) -> Outcome<()> {
    let home = &config.volume(name)?.home;
    let mounts = all_mounts();
    let place = Place::of(home, &mounts);
    for (other, volume) in config.volumes.iter().filter(|(other, _)| *other != name) {
        let others = Place::of(&volume.home, &mounts);
        let nested = match (place.is_in(&others), others.is_in(&place)) {
            (true, _) => Some((home, (other.as_str(), &volume.home))),
            (_, true) => Some((&volume.home, (name, home))),
            _ => None,
        };
        let Some((inner, (whose, outer))) = nested else { continue };
        let (inner, outer) = (inner.display(), outer.display());
        let why = format!("{inner} lies inside {outer}, which is the home of volume {whose}");
        let remedy = "name homes that share nothing, or make one volume of both";
        return Err(Problem::new(Exit::Usage, what, why, remedy));
    }
    refuse_around(what, home)
}

/// Refuses a home inside one that is attached, by whatever keeper.
fn refuse_around(what: &str, home: &Path) -> Outcome<()> {
    let is_attached = |above: &&Path| {
        let wearer = File::open(above).and_then(Wearer::of);
        wearer.is_ok_and(|wearer| wearer.barred_for().is_some())
    };
    let inner = leads_to(home);
    let outer = inner.ancestors().skip(1).find(is_attached);
    outer.map_or(Ok(()), |outer| {
        let (inner, outer) = (inner.display(), outer.display());
        let why = format!("{inner} lies inside {outer}, which is the home of a volume in use");
        Err(Problem::new(Exit::InUse, what, why, "unmount that volume, or name another home"))
    })
}

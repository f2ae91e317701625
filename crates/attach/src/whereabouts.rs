//! Whether the files of a log that is served are where its directory's name says.
//!
//! Whoever serves a log has its directory and its segments open, and would write on into files that
//! nobody finds any more. A log never takes a segment away that its catalogue lists while it is
//! served, so that one which was seen and is not there, or is another file, was taken by somebody
//! else. What is being made is not listed, and is taken away by the log itself where there is no
//! room for it.
//!
//! Promise: that segments, notes, catalogues or the directory were removed, or moved, is noticed
//! at the next look; a disk that does not answer keeps nobody waiting. A log is made again from
//! memory that has all of it, beside whoever serves it or after his end.
//! Never: ends anybody; makes a second log beside one that is somewhere.

use crate::bond::{Wearer, hex, note_again, note_in, note_unknown};
use crate::logs::THE_DISK;
use crate::observe::region_problem;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::real::RealFiles;
use holdfast_io::{Shown, private};
use holdfast_log::{CreateError, Log, LogConfig, RemakeError, is_segment_name};
use holdfast_machine::advice::cure;
use holdfast_machine::bounded;
use holdfast_machine::holders::holder;
use holdfast_machine::lock::{CATALOGUES, take_directory};
use holdfast_machine::mounts::mounted_at;
use holdfast_memory::{Medium, Observed, Region};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, fstat, major, minor, stat, statat};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// What a look at a log that is served found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// Everything is where it was.
    InPlace,
    /// The directory has everything, and is there now, for people.
    Moved(String),
    /// Something that is no file has this name of the log's.
    Barred(String),
    /// So many of the files that were there are gone, shorter, or others; the catalogues are there.
    Lacking(usize),
    /// Nothing is left that makes the directory a log.
    Removed,
}

/// What earlier looks saw of a log's directory.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    segments: BTreeMap<String, Segment>,
    notes: BTreeSet<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    inode: u64,
    bytes: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    segments: BTreeMap<String, Segment>,
    notes: BTreeSet<&'static str>,
    has_catalogue: bool,
    /// A name of the log's that something else has.
    barred: Option<String>,
    /// Where the directory is, if its name does not lead to it.
    elsewhere: Option<String>,
}

impl Watched {
    /// Looks at the directory that whoever serves the log has open by this name. What cannot be
    /// told, because its disk does not answer or fails, is no news.
    pub fn look(&mut self, directory: &OwnedFd, path: &Path) -> Whereabouts {
        let (Ok(held), name) = (directory.try_clone(), path.to_owned()) else {
            return Whereabouts::InPlace;
        };
        let found = bounded::read(path, move |_| see(&held, &name)).ok().and_then(Result::ok);
        let Some(found) = found else { return Whereabouts::InPlace };
        if let Some(name) = found.barred {
            return Whereabouts::Barred(name);
        }
        if !found.has_catalogue {
            return Whereabouts::Removed;
        }
        let lost = self.segments.iter().filter(|(name, was)| {
            let is_there = |it: &Segment| it.inode == was.inode && it.bytes >= was.bytes;
            !found.segments.get(*name).is_some_and(is_there)
        });
        match lost.count() + self.notes.difference(&found.notes).count() {
            0 => (self.segments, self.notes) = (found.segments, found.notes),
            lost => return Whereabouts::Lacking(lost),
        }
        found.elsewhere.map_or(Whereabouts::InPlace, Whereabouts::Moved)
    }

    /// Nobody serves the log any more: whoever does next may find other files.
    pub fn forget(&mut self) {
        *self = Watched::default();
    }
}

fn see(directory: &OwnedFd, path: &Path) -> io::Result<Seen> {
    let mut seen = Seen::default();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let note = note_in(name);
        if !CATALOGUES.contains(&name) && note.is_none() && !is_segment_name(name) {
            continue;
        }
        let Ok(found) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            seen.barred = Some(name.to_owned());
        } else if let Some(note) = note {
            seen.notes.insert(note);
        } else if is_segment_name(name) {
            let segment = Segment { inode: found.st_ino, bytes: found.st_size };
            seen.segments.insert(name.to_owned(), segment);
        } else {
            seen.has_catalogue = true;
        }
    }
    if seen.has_catalogue {
        let listed = Log::segments_of(&RealFiles::from_fd(directory.try_clone()?));
        let listed = listed.map_err(io::Error::other)?;
        seen.segments.retain(|name, _| listed.contains(name));
    }
    seen.elsewhere = (!leads_to(path, directory)).then(|| place_of(directory));
    Ok(seen)
}

/// Where a home is that somebody has open by this name, for people, if the name does not lead to
/// it. What cannot be told, because its disk does not answer, is no news; and behind a mount of its
/// own volume it is not looked for.
pub fn home_elsewhere(home: &OwnedFd, path: &Path) -> Option<String> {
    let (held, name) = (home.try_clone().ok()?, path.to_owned());
    let elsewhere = move |_: &Path| {
        let is_covered = mounted_at(&name).is_some_and(|mount| mount.is_ours());
        (!is_covered && !leads_to(&name, &held)).then(|| place_of(&held))
    };
    bounded::read(path, elsewhere).ok().flatten()
}

/// Where a directory is that somebody has open by this name. What cannot be told, because its disk
/// does not answer or fails, is no news.
pub fn directory_whereabouts(held: &OwnedFd, path: &Path) -> Whereabouts {
    let (Ok(held), name) = (held.try_clone(), path.to_owned()) else {
        return Whereabouts::InPlace;
    };
    let look = move |_: &Path| match (leads_to(&name, &held), fstat(&held)) {
        (false, Ok(stat)) if stat.st_nlink == 0 => Whereabouts::Removed,
        (false, Ok(_)) => Whereabouts::Moved(place_of(&held)),
        _ => Whereabouts::InPlace,
    };
    bounded::read(path, look).unwrap_or(Whereabouts::InPlace)
}

/// Whether the name leads to what is open. A device is the same by whatever node it is found.
fn leads_to(path: &Path, held: &OwnedFd) -> bool {
    let place = |stat: Stat| match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => (0, stat.st_rdev),
        _ => (stat.st_dev, stat.st_ino),
    };
    let (there, held) = (stat(path).map(place), fstat(held).map(place));
    there.is_ok_and(|there| held.is_ok_and(|held| there == held))
}

/// Where what is open is now, for people.
fn place_of(held: impl AsFd) -> String {
    let link = format!("/proc/self/fd/{}", held.as_fd().as_raw_fd());
    match (std::fs::read_link(link), fstat(&held)) {
        (Ok(path), _) => Shown::name(&path).to_string(),
        (Err(_), Ok(Stat { st_dev, st_ino, .. })) => {
            let device = format!("{}:{}", major(st_dev), minor(st_dev));
            format!("a path that cannot be told (inode {st_ino} on device {device})")
        }
        (Err(error), _) => format!("a path that cannot be told ({error})"),
    }
}

/// A log of a volume, as its memory is to find it.
#[derive(Clone, Debug)]
pub struct Lost<'a> {
    /// Whose it is: `volume/NAME`.
    pub service: &'a str,
    /// Its directory.
    pub log: &'a Path,
    /// The memory that has all of it.
    pub medium: Medium,
    /// What it is to be like.
    pub config: LogConfig,
    /// Its home, if it has one.
    pub home: Option<Home<'a>>,
    /// It is in the directory of a store, which is locked as a whole.
    pub is_of_store: bool,
}

/// The home of a log.
#[derive(Clone, Copy, Debug)]
pub enum Home<'a> {
    /// Whoever asks has had it open since it was served.
    Held(&'a Path, &'a OwnedFd),
    /// It is open now.
    Opened(&'a Path, &'a OwnedFd),
    /// It is found by its name, unless the mount of its own volume covers it: then whoever
    /// supervises its front end has it open, and notes it a moment later.
    ByName(&'a Path),
}

impl Home<'_> {
    fn opened(self) -> Option<(PathBuf, OwnedFd)> {
        match self {
            Home::Held(path, home) | Home::Opened(path, home) => {
                Some((path.to_owned(), home.try_clone().ok()?))
            }
            Home::ByName(path) => {
                let is_covered = mounted_at(path).is_some_and(|mount| mount.is_ours());
                let open = || private::open_anybodys(path, OFlags::RDONLY | OFlags::NONBLOCK);
                let home = (!is_covered).then(open)?.ok()?;
                Some((path.to_owned(), home))
            }
        }
    }
}

impl Lost<'_> {
    /// For people.
    pub fn whose(&self) -> String {
        self.service.replacen('/', " ", 1)
    }

    /// Whether the log's name leads to what somebody has open.
    pub fn is_in_place(&self, held: &OwnedFd) -> bool {
        leads_to(self.log, held)
    }

    /// Makes the log again from its memory, where nothing of it is left: in the directory that is
    /// held, if its name leads there, or in one that is made, and returned locked. None if nothing
    /// was to be made.
    pub fn make_again(&self, held: Option<&OwnedFd>) -> Outcome<Option<OwnedFd>> {
        let in_place = held.filter(|held| leads_to(self.log, held));
        let made = match in_place {
            Some(_) => None,
            None => Some(self.directory()?),
        };
        let directory = in_place.or(made.as_ref()).expect("one of them is there");
        let files = directory.try_clone().map(RealFiles::from_fd);
        let files =
            files.map_err(|error| self.problem(&error, "see whether descriptors ran out"))?;
        if Log::identity_of(&files).is_err() {
            self.fill(&files)?;
        }
        Ok(made)
    }

    /// [`Self::make_again`] where nobody serves the log; the directory is locked. Nothing is made
    /// beside the home of another log.
    pub fn make_again_unserved(&self) -> Outcome<OwnedFd> {
        if let Some((why, remedy)) = holder(&self.medium) {
            return Err(Problem { exit: Exit::InUse, ..self.problem(&why, &remedy) });
        }
        let identity = self.memory()?.identity();
        let home = self.home.and_then(Home::opened);
        let badge = home.and_then(|(_, home)| Wearer::of(home).ok()?.badge());
        if let Some(badge) = badge.filter(|badge| badge.identity != hex(identity)) {
            let why = format!("its home is that of another log, {}", badge.identity);
            return Err(self.problem(&why, "correct home or memory.path; nothing was changed"));
        }
        let made = self.make_again(None)?;
        Ok(made.expect("a directory was opened"))
    }

    /// Notes the home again beside a log that has lost its note of it. Where that cannot be done,
    /// whoever attaches the two next is asked to name the home.
    pub fn note_home(&self, held: &OwnedFd) -> Outcome<()> {
        let Ok(files) = held.try_clone().map(RealFiles::from_fd) else { return Ok(()) };
        let Ok(identity) = Log::identity_of(&files) else { return Ok(()) };
        match self.home.and_then(Home::opened) {
            Some((path, home)) => note_again(&files, identity, (&path, &home), self.was_served()),
            None => Ok(()),
        }
    }

    fn was_served(&self) -> bool {
        matches!(self.home, Some(Home::Held(..)))
    }

    fn memory(&self) -> Outcome<Observed> {
        Region::observe_to_attach(&self.medium).map_err(|error| {
            region_problem("making a log again from", (self.service, &self.medium), &error)
        })
    }

    /// Whether anybody finds the memory by its name now.
    pub fn has_memory(&self) -> bool {
        Region::observe_to_attach(&self.medium).is_ok()
    }

    /// The note of its home first: a log that is there without it is not brought together with any.
    fn fill(&self, files: &RealFiles) -> Outcome<()> {
        let seen = self.memory()?;
        if let Some(home) = self.home {
            if let Some((path, home)) = home.opened() {
                note_again(files, seen.identity(), (&path, &home), self.was_served())?;
            }
            note_unknown(files, seen.identity())?;
        }
        Log::remake(files, &seen, &self.config).map_err(|error| {
            let remedy = format!("nothing is lost; {}", self.way(&error));
            self.problem(&error, &remedy)
        })?;
        let (log, of) = (self.log.display(), hex(seen.identity()));
        tracing::warn!(service = self.service, of, "its log was made again from memory, in {log}");
        Ok(())
    }

    fn way(&self, error: &RemakeError) -> String {
        match error {
            RemakeError::Place(CreateError::Io(error)) => cure(error, THE_DISK),
            RemakeError::Place(_) => format!("move away what is in {}", self.log.display()),
            _ => "put the log's directory back".to_owned(),
        }
    }

    fn directory(&self) -> Outcome<OwnedFd> {
        let made = private::directory(self.log).map_err(|error| {
            self.problem(&error, &format!("nothing is lost; {}", cure(&error, THE_DISK)))
        })?;
        private::close_to_others(&made)
            .map_err(|error| self.problem(&error, "run as its owner"))?;
        match self.is_of_store {
            true => Ok(made),
            false => take_directory("log", self.log),
        }
    }

    fn problem(&self, why: &dyn std::fmt::Display, remedy: &str) -> Problem {
        let what = format!("making the log of {} again from its memory", self.whose());
        Problem::new(Exit::Failed, what, why, remedy)
    }
}

#[cfg(test)]
mod tests;

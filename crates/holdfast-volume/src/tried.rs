//! What the home makes of owners, and of nodes that are neither files nor directories.
//!
//! Promise: an owner is acknowledged only after the home gave one like it to a file, and kept it; a
//! symbolic link, pipe, socket or device node after it made one like it: of its kind, and a link
//! that is at least as long. All that in the volume's own directory.
//! Never: leaves what was tried behind, but for a death, after which it goes with the volume's own.
//! A home that has no room to be asked is not.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use holdfast_io::{Change, Files, InodeNumbers, Kind};

use crate::own;
use crate::tree::{Errno, NewNode};

/// In the form of the name of a file that has lost its own.
const NAME: &str = "0-3";
/// More than a machine has users in turn.
const OWNERS_MAX: usize = 65_536;

/// What was taken once is taken again.
#[derive(Debug, Default)]
pub(crate) struct Tried(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Of the longest symbolic link.
    link_bytes: Option<usize>,
    pipes: bool,
    sockets: bool,
    /// Users, each with a group.
    owners: BTreeSet<(u32, u32)>,
}

impl Tried {
    /// The home's own error for a node that it does not make, or not with that owner.
    pub(crate) fn admit(&self, home: &dyn Files, new: &NewNode<'_>) -> Result<(), Errno> {
        self.admit_owner(home, (new.uid, new.gid))?;
        if matches!(new.kind, Kind::File | Kind::Directory) {
            return Ok(());
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.makes(new) {
            return Ok(());
        }
        let made = on_scratch(home, |path| {
            match new.kind {
                Kind::Symlink => home.make_symlink(path, new.target)?,
                kind => home.make_node(path, kind, 0, new.rdev)?,
            }
            Ok(home.metadata(path)?.kind == new.kind)
        });
        match was_asked(made)? {
            Some(false) => return Err(Errno::PERM),
            Some(true) => known.note(new),
            None => {}
        }
        Ok(())
    }

    /// The home's own error for an owner that it does not give, and `EPERM` for one that it does
    /// not keep.
    pub(crate) fn admit_owner(&self, home: &dyn Files, owner: (u32, u32)) -> Result<(), Errno> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.owners.contains(&owner) {
            return Ok(());
        }
        let kept = on_scratch(home, |path| {
            let held = home.make(path, Kind::File, 0o600, 0)?;
            let (uid, gid) = (Some(owner.0), Some(owner.1));
            held.change(&Change { uid, gid, ..Change::default() })?;
            let found = held.metadata()?;
            Ok((found.uid, found.gid) == owner)
        });
        match was_asked(kept)? {
            None => return Ok(()),
            Some(false) => return Err(Errno::PERM),
            Some(true) => {}
        }
        if known.owners.len() == OWNERS_MAX {
            known.owners.clear();
        }
        known.owners.insert(owner);
        Ok(())
    }
}

impl Known {
    fn makes(&self, new: &NewNode<'_>) -> bool {
        match new.kind {
            Kind::File | Kind::Directory => true,
            Kind::Symlink => self.link_bytes.is_some_and(|bytes| bytes >= new.target.len()),
            Kind::Fifo => self.pipes,
            Kind::Socket => self.sockets,
            // Few are made, by root, and what one is may depend on its number.
            Kind::CharDevice | Kind::BlockDevice => false,
        }
    }

    fn note(&mut self, new: &NewNode<'_>) {
        match new.kind {
            Kind::Symlink => self.link_bytes = self.link_bytes.max(Some(new.target.len())),
            Kind::Fifo => self.pipes = true,
            Kind::Socket => self.sockets = true,
            _ => {}
        }
    }
}

/// `EXDEV` for a directory that the home cannot give another name, as overlayfs cannot where it is
/// of a lower layer: nothing takes the place of a directory that has something in it, and that is
/// looked at last.
pub(crate) fn admit_move(home: &dyn Files, directory: &Path) -> Result<(), Errno> {
    if home.inode_numbers() != InodeNumbers::KeptUntilChanged {
        return Ok(());
    }
    let moved = on_scratch(home, |path| {
        home.make_node(path, Kind::Fifo, 0, 0)?;
        home.rename(directory, own::NAME.as_ref())
    });
    match moved.map_err(Errno::from) {
        Err(Errno::XDEV) => Err(Errno::XDEV),
        _ => Ok(()),
    }
}

/// Why a directory can be no volume's home: what programs would be told that they have, and its
/// file system does not keep. Nothing if it can, or if it cannot be asked now. It is tried out in
/// the volume's own directory, which goes again unless it was there.
///
/// # Errors
/// The home's own.
pub fn unfitness(home: &dyn Files) -> io::Result<Option<String>> {
    let is_there = || home.metadata(own::NAME.as_ref()).is_ok();
    let was_there = is_there();
    let found = match own::make(home) {
        Ok(()) => unfitness_by_trial(home)?,
        Err(error) if !was_there && is_there() => Some(refuses(&error)),
        // Whoever changes something will be told.
        Err(_) => return Ok(None),
    };
    match &found {
        None if !was_there => own::remove(home, None)?,
        // It may well refuse that, too.
        Some(_) if !was_there => drop(home.remove_dir(own::NAME.as_ref())),
        _ => {}
    }
    Ok(found)
}

fn refuses(error: &io::Error) -> String {
    format!("its file system refuses what every volume does ({error})")
}

fn unfitness_by_trial(home: &dyn Files) -> io::Result<Option<String>> {
    if let Some(fault) = own::fault(home)? {
        return Ok(Some(format!("its file system shows what a volume made otherwise: {fault}")));
    }
    let found = unfitness_of_file(home).and_then(|found| match found {
        None => unfitness_of_directory(home),
        found => Ok(found),
    });
    match found {
        Err(error) if is_about_room(&error) => Ok(None),
        Err(error) if is_refusal(&error) => Ok(Some(refuses(&error))),
        found => Ok(found?.map(str::to_owned)),
    }
}

/// When a time is told back, this much of it may be gone: there are file systems that count in
/// seconds, and in two.
const COARSE_NS: i128 = 2_000_000_000;
const SOME_TIME_NS: i128 = 1_234_567_890_123_456_789;

fn unfitness_of_file(home: &dyn Files) -> io::Result<Option<&'static str>> {
    let renamed = own_path("0-4");
    remove(home, &renamed)?;
    on_scratch(home, |path| {
        let held = home.make(path, Kind::File, 0o640, 0)?;
        let mut modes = vec![(held.metadata()?.mode, 0o640)];
        for mode in [0o4751, 0o606] {
            held.change(&Change { mode: Some(mode), ..Change::default() })?;
            modes.push((held.metadata()?.mode, mode));
        }
        if modes.iter().any(|(found, wanted)| found != wanted) {
            return Ok(Some("its file system does not keep the permissions of files"));
        }
        held.change(&Change { modified_ns: Some(SOME_TIME_NS), ..Change::default() })?;
        if (held.metadata()?.modified_ns - SOME_TIME_NS).abs() > COARSE_NS {
            return Ok(Some("its file system does not keep the times of files"));
        }
        home.rename(path, &renamed)?;
        let is_there = home.metadata(&renamed).is_ok() && home.metadata(path).is_err();
        home.remove_file(&renamed)?;
        Ok((!is_there).then_some("its file system does not rename files"))
    })
}

fn unfitness_of_directory(home: &dyn Files) -> io::Result<Option<&'static str>> {
    let [.., scratch] = own::SCRATCH.map(own_path);
    crate::names::make_unless_there(home, &scratch)?;
    let change = Change { mode: Some(0o1751), ..Change::default() };
    let found = home.change(&scratch, &change).and_then(|()| home.metadata(&scratch));
    let is_folded = home.metadata(&own_path("SCRATCH")).is_ok();
    home.remove_dir(&scratch)?;
    Ok(match (found?.mode == 0o1751, is_folded) {
        (false, _) => Some("its file system does not keep the permissions of directories"),
        (_, true) => Some("names that differ in case alone are one there"),
        _ => None,
    })
}

/// What came of it, and nothing if the home has no room to be asked: what is admitted has to find
/// room otherwise.
fn was_asked<T>(tried: io::Result<T>) -> Result<Option<T>, Errno> {
    match tried {
        Err(error) if is_about_room(&error) => Ok(None),
        tried => Ok(Some(tried?)),
    }
}

fn is_about_room(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
}

fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(error.kind(), PermissionDenied | Unsupported | InvalidInput)
}

/// Tries something out at a path that is free, and frees it.
fn on_scratch<T>(home: &dyn Files, tried: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = own_path(NAME);
    own::make(home)?;
    // What is there was left by a process that died here.
    remove(home, &path)?;
    let outcome = tried(&path);
    remove(home, &path)?;
    outcome
}

fn own_path(name: &str) -> PathBuf {
    Path::new(own::NAME).join(name)
}

fn remove(home: &dyn Files, path: &Path) -> io::Result<()> {
    match home.remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

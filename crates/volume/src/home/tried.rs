//! What the home makes of owners, and of nodes that are neither files nor directories.
//!
//! Promise: an owner is acknowledged only after the home gave one like it to a file, and kept it; a
//! symbolic link, pipe, socket or device node after it made one like it: of its kind, and a link
//! that is at least as long. All that in the volume's own directory.
//! Never: leaves what was tried behind, but for a death, after which it goes with the volume's own.
//! A home that has no room to be asked is not.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use holdfast_io::{Change, Files, InodeNumbers, Kind};

use crate::own::{self, on_scratch};
use holdfast_io::tree::{Errno, NewNode};

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

/// What came of it, and nothing if the home has no room to be asked: what is admitted has to find
/// room otherwise.
fn was_asked<T>(tried: io::Result<T>) -> Result<Option<T>, Errno> {
    match tried {
        Err(error) if is_about_room(&error) => Ok(None),
        tried => Ok(Some(tried?)),
    }
}

pub(crate) fn is_about_room(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
}

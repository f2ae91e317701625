//! What the home makes of nodes that are neither files nor directories.
//!
//! Promise: a symbolic link, pipe, socket or device node is acknowledged only after the home made
//! one like it, in the volume's own directory: of its kind, and a link that is at least as long.
//! Never: leaves what was tried behind, but for a death, after which it goes with the volume's own.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_io::{Files, Kind};

use crate::names::{ORPHANS_NAME, to_path};
use crate::own;
use crate::tree::{Errno, NewNode};

/// In the form of the name of a file that has lost its own.
const NAME: &str = "0-3";

/// What was made once is made again.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    /// One more than the bytes of the longest symbolic link; 0 if there was none.
    link_bytes: AtomicUsize,
    pipes: AtomicUsize,
    sockets: AtomicUsize,
}

impl Tried {
    /// The home's own error for a node that it does not make.
    pub(crate) fn admit(&self, home: &dyn Files, new: &NewNode<'_>) -> Result<(), Errno> {
        let (known, wanted) = match new.kind {
            Kind::File | Kind::Directory => return Ok(()),
            Kind::Symlink => (Some(&self.link_bytes), 1 + new.target.len()),
            Kind::Fifo => (Some(&self.pipes), 1),
            Kind::Socket => (Some(&self.sockets), 1),
            // Few are made, by root, and what one is may depend on its number.
            Kind::CharDevice | Kind::BlockDevice => (None, 1),
        };
        if known.is_some_and(|known| known.load(Ordering::Relaxed) >= wanted) {
            return Ok(());
        }
        make_once(home, new)?;
        known.into_iter().for_each(|known| drop(known.fetch_max(wanted, Ordering::Relaxed)));
        Ok(())
    }
}

fn make_once(home: &dyn Files, new: &NewNode<'_>) -> Result<(), Errno> {
    let path = to_path(ORPHANS_NAME.to_vec()).join(NAME);
    own::make(home)?;
    remove(home, &path)?;
    let made = match new.kind {
        Kind::Symlink => home.make_symlink(&path, new.target),
        kind => home.make_node(&path, kind, 0, new.rdev),
    };
    remove(home, &path)?;
    Ok(made?)
}

fn remove(home: &dyn Files, path: &Path) -> Result<(), Errno> {
    match home.remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => Ok(removed?),
    }
}

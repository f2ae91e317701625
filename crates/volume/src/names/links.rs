//! Whether a file of the home can have several names.
//!
//! A process that makes a file system (FUSE) may tell the kernel of one file as of several, one
//! for each name, and many do. The kernel then keeps pages and attributes for each of them, and
//! shows by one name what it kept, whatever was written by another.
//!
//! Promise: where they may be several, it is tried out on a file of the volume's own before a link
//! is acknowledged; a home on which it cannot be tried out has no links.
//! Never: leaves that file behind, but for a death, after which it goes with the volume's own.

mod allowed;

use std::io;
use std::path::Path;

use holdfast_io::{Files, InodeNumbers, Limits, OpenHow};

use crate::names::paths::to_path;
use crate::own::{self, ORPHANS_NAME};

/// What the two names are, in the form of names of files that have lost theirs.
const NAMES: [&str; 2] = ["0-1", "0-2"];
/// A page, and one that the file grows by.
const PAGE: [u8; 4096] = [1; 4096];
const AFTERWARDS: [u8; 8192] = [2; 8192];

/// Whether all names of a file are one inode, as where inodes keep their numbers. Of any other
/// home, such as those of FUSE and FAT, nothing says whether a file can have names, and one shows
/// what was changed by another.
fn are_one_inode(home: &dyn Files) -> bool {
    matches!(home.inode_numbers(), InodeNumbers::Kept(_))
}

/// The limits of a home, one name for each file where several are not the same.
pub(crate) fn limits_of(home: &dyn Files) -> io::Result<Limits> {
    let mut limits = home.limits()?;
    let may_differ = limits.links_max > 1 && !are_one_inode(home);
    if may_differ && !show_the_same(home).unwrap_or(false) {
        limits.links_max = 1;
    }
    Ok(limits)
}

/// Tries it out.
fn show_the_same(home: &dyn Files) -> io::Result<bool> {
    let own = to_path(ORPHANS_NAME.to_vec());
    let [one, other] = NAMES.map(|name| own.join(name));
    own::make(home)?;
    // What is there was left by a process that died here.
    let _ = (home.remove_file(&one), home.remove_file(&other));
    let shown = see_by_the_other(home, &one, &other);
    let _ = (home.remove_file(&one), home.remove_file(&other));
    shown
}

/// Whether one name shows what is written, and how far, and which names go, by the other.
fn see_by_the_other(home: &dyn Files, one: &Path, other: &Path) -> io::Result<bool> {
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = home.open(one, how)?;
    file.write_all_at(&PAGE, 0)?;
    home.link(one, other)?;
    let seen = home.open(other, OpenHow::default())?;
    let mut bytes = AFTERWARDS;
    // From here on the kernel has what it would keep.
    seen.read_full_at(&mut bytes, 0)?;
    let before = seen.metadata()?;
    file.write_all_at(&AFTERWARDS, 0)?;
    let is_seen = seen.read_full_at(&mut bytes, 0)? == bytes.len() && bytes == AFTERWARDS;
    let has_grown = seen.metadata()?.size_bytes == AFTERWARDS.len() as u64;
    home.remove_file(one)?;
    let has_one_name = (before.links, seen.metadata()?.links) == (2, 1);
    Ok(is_seen && has_grown && has_one_name)
}

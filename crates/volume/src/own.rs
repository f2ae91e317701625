//! The volume's own directory in its home: files that lost their names, marks, what is tried out.
//!
//! Promise: it comes and goes without a trace in the root's time, which belongs to programs. Only
//! what has the form of what a volume makes there is ever removed; see [`fault`].
//! Never: follows a link at its name. A process that dies between the change and the time leaves
//! the time as that of the change.

use std::io;
use std::path::{Path, PathBuf};

use holdfast_io::acl::DEFAULT;
use holdfast_io::private::is_trusted;
use holdfast_io::{Change, DirEntry, Files, Kind};

use crate::names::paths::to_path;
use holdfast_io::tree::Errno;

/// The directories in which it is tried what the home can do.
pub(crate) const SCRATCH: [&str; 3] = ["one", "other", "scratch"];

/// A name that is no text, with what some systems keep for themselves, tried out as one.
pub(crate) const ODD_NAME: &[u8] = b"\xff\x01:*?\"<>|\\ .";
/// In the form of the name of a file that has lost its own: what is tried out is no directory.
const SCRATCH_FILE: &str = "0-3";

/// The name, in the root of a home, at which a volume keeps what is its own.
pub const NAME: &str = ".holdfast";
/// Where the home keeps files that have no name but are still open.
pub(crate) const ORPHANS_NAME: &[u8] = NAME.as_bytes();

/// What a path into another file system is answered with, `EXDEV`.
const IS_ELSEWHERE: i32 = 18;

/// Makes it unless it is there.
pub(crate) fn make(home: &dyn Files) -> io::Result<()> {
    let before_ns = root_time(home)?;
    match home.make_dir(&to_path(ORPHANS_NAME.to_vec()), 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            directory_fault(home)?.map_or(Ok(()), |fault| Err(refused(fault)))
        }
        made => made
            .and_then(|()| take_list(home))
            .and_then(|()| home.hold(&to_path(ORPHANS_NAME.to_vec()))?.hand_no_project_down())
            .and_then(|()| set_root_time(home, before_ns)),
    }
}

/// What is made in it gets no list that the root hands down.
fn take_list(home: &dyn Files) -> io::Result<()> {
    match home.remove_xattr(&to_path(ORPHANS_NAME.to_vec()), DEFAULT) {
        Err(error) if error.raw_os_error() == Some(Errno::NOTSUP.0) => Ok(()),
        taken => taken,
    }
}

/// Removes it with all that is in it, and gives the root that time, or else the one that it had.
/// Where it is not there, nothing is done.
pub(crate) fn remove(home: &dyn Files, root_ns: Option<i128>) -> io::Result<()> {
    if let Some(fault) = fault(home)? {
        return Err(refused(fault));
    }
    let own = to_path(ORPHANS_NAME.to_vec());
    let listing = match home.read_dir(&own) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listing => listing?,
    };
    for entry in listing {
        let path = own.join(to_path(entry.name));
        match entry.kind {
            Kind::Directory => home.remove_dir(&path)?,
            _ => home.remove_file(&path)?,
        }
    }
    let before_ns = root_ns.map_or_else(|| root_time(home), Ok)?;
    home.remove_dir(&own)?;
    set_root_time(home, before_ns)?;
    home.sync_dir(Path::new(""))
}

/// Makes a directory of the volume's own. One that is there was left behind by a process that died.
pub(crate) fn make_unless_there(home: &dyn Files, path: &Path) -> io::Result<()> {
    match home.make_dir(path, 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Tries something out at a path that is free, and frees it.
pub(crate) fn on_scratch<T>(
    home: &dyn Files,
    tried: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let path = path(SCRATCH_FILE);
    make(home)?;
    // What is there was left by a process that died here.
    remove_if_there(home, &path)?;
    let outcome = tried(&path);
    remove_if_there(home, &path)?;
    outcome
}

/// Where something of the volume's own is.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(NAME).join(name)
}

pub(crate) fn remove_if_there(home: &dyn Files, path: &Path) -> io::Result<()> {
    match home.remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Why what is there at that name is not what a volume made; nothing if it is, or if there is
/// nothing. What a volume made is a directory of this user's or the superuser's, closed to others,
/// with nothing in it but what volumes put there, by its name and its kind.
///
/// # Errors
/// The home's own.
pub fn fault(home: &dyn Files) -> io::Result<Option<String>> {
    if let Some(fault) = directory_fault(home)? {
        return Ok(Some(fault));
    }
    let own = to_path(ORPHANS_NAME.to_vec());
    let listing = match home.read_dir(&own) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        listing => listing?,
    };
    for entry in &listing {
        if !is_form(entry) || !is_empty(home, &own, entry)? {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            return Ok(Some(format!("there is {name:?} in it")));
        }
    }
    Ok(None)
}

/// [`fault`] of the directory itself.
fn directory_fault(home: &dyn Files) -> io::Result<Option<String>> {
    let found = match home.metadata(&to_path(ORPHANS_NAME.to_vec())) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(IS_ELSEWHERE) => {
            return Ok(Some("it is another file system".to_owned()));
        }
        found => found?,
    };
    Ok(match found.kind {
        Kind::Directory if !is_trusted(found.uid) => Some(format!("user {} has it", found.uid)),
        Kind::Directory if found.mode & 0o077 != 0 => {
            Some(format!("its permissions are {:o}", found.mode))
        }
        Kind::Directory => None,
        _ => Some("it is no directory".to_owned()),
    })
}

/// The number of the node that a file without a name was, by the name that it has here.
pub(crate) fn orphan_number(name: &[u8]) -> Option<u64> {
    let (node, tail) = std::str::from_utf8(name).ok()?.split_once('-')?;
    if is_number(tail) { node.parse().ok() } else { None }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

/// Whether a volume makes something of that name and kind.
fn is_form(entry: &DirEntry) -> bool {
    if entry.name == ODD_NAME {
        return entry.kind == Kind::File;
    }
    let Ok(name) = std::str::from_utf8(&entry.name) else { return false };
    match name.split_once('-') {
        None => SCRATCH.contains(&name) && entry.kind == Kind::Directory,
        Some(("roster", number)) => is_number(number) && entry.kind == Kind::File,
        Some(("exchange", at)) => is_number(at) && entry.kind == Kind::Symlink,
        Some((node, tail)) => is_number(node) && is_number(tail) && entry.kind != Kind::Directory,
    }
}

/// Directories of a moment, in which something is tried out, have nothing in them.
fn is_empty(home: &dyn Files, own: &Path, entry: &DirEntry) -> io::Result<bool> {
    let path = own.join(to_path(entry.name.clone()));
    Ok(entry.kind != Kind::Directory || home.read_dir(&path)?.is_empty())
}

fn refused(fault: String) -> io::Error {
    io::Error::other(format!("no volume made this: {fault}; move it away"))
}

fn root_time(home: &dyn Files) -> io::Result<i128> {
    Ok(home.metadata(Path::new(""))?.modified_ns)
}

fn set_root_time(home: &dyn Files, modified_ns: i128) -> io::Result<()> {
    let change = Change { modified_ns: Some(modified_ns), ..Change::default() };
    home.change(Path::new(""), &change)
}

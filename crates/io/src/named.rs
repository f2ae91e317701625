//! Files whose errors say what was tried, and with which file.
//!
//! Promise: whatever fails below a root that goes through here names the operation and the file,
//! and keeps the kind of the error and, for [`errno`], its number.
//! Never: names a file twice; changes what succeeds.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{
    Allocation, Change, DirEntry, Files, Held, InodeNumbers, Kind, Limits, Metadata, OpenFile,
    OpenHow, Seek, Shown, Space,
};

/// An error, and what it happened to.
#[derive(Debug)]
struct Told {
    doing: &'static str,
    path: PathBuf,
    at: Option<u64>,
    error: io::Error,
}

impl Display for Told {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.doing, Shown::name(&self.path))?;
        self.at.map_or(Ok(()), |at| write!(out, " at byte {at}"))?;
        write!(out, ": {}", self.error)
    }
}

impl Error for Told {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

/// The error of doing something with a file, which it names unless it does so already.
#[must_use]
pub fn named(doing: &'static str, path: &Path, error: io::Error) -> io::Error {
    told(doing, path, None, error)
}

/// The error below its name.
#[must_use]
pub fn unnamed(error: &io::Error) -> &io::Error {
    let told = error.get_ref().and_then(|inner| inner.downcast_ref::<Told>());
    told.map_or(error, |told| unnamed(&told.error))
}

/// The system's number of an error, named or not.
#[must_use]
pub fn errno(error: &io::Error) -> Option<i32> {
    unnamed(error).raw_os_error()
}

fn told(doing: &'static str, path: &Path, at: Option<u64>, error: io::Error) -> io::Error {
    if error.get_ref().is_some_and(|inner| inner.is::<Told>()) {
        return error;
    }
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    io::Error::new(error.kind(), Told { doing, path: path.to_path_buf(), at, error })
}

/// Files that others have, with errors that name them.
pub struct Named<F> {
    files: F,
    root: PathBuf,
}

impl<F> Named<F> {
    /// The root of `files`, whose own path is not known.
    pub fn new(files: F) -> Named<F> {
        Named::below(files, Path::new(""))
    }

    /// The root of `files`, which is at `root`.
    pub fn below(files: F, root: &Path) -> Named<F> {
        Named { files, root: root.to_path_buf() }
    }

    fn path(&self, path: &Path) -> PathBuf {
        if path.as_os_str().is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    fn tell<T>(&self, doing: &'static str, path: &Path, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| named(doing, &self.path(path), error))
    }
}

impl<'f, F> Files for Named<F>
where
    F: Deref<Target = dyn Files + 'f> + Send + Sync,
{
    fn open(&self, path: &Path, how: OpenHow) -> io::Result<Arc<dyn OpenFile>> {
        let file = self.tell("opening", path, self.files.open(path, how))?;
        Ok(Arc::new(NamedFile { file, path: self.path(path) }))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.tell("looking at", path, self.files.metadata(path))
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.tell("listing", path, self.files.read_dir(path))
    }

    fn read_link(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.tell("reading", path, self.files.read_link(path))
    }

    fn hold(&self, path: &Path) -> io::Result<Box<dyn Held>> {
        let held = self.tell("taking hold of", path, self.files.hold(path))?;
        Ok(Box::new(NamedHeld { held, path: self.path(path) }))
    }

    fn make(&self, path: &Path, kind: Kind, mode: u32, rdev: u64) -> io::Result<Box<dyn Held>> {
        let held = self.tell("making", path, self.files.make(path, kind, mode, rdev))?;
        Ok(Box::new(NamedHeld { held, path: self.path(path) }))
    }

    fn make_symlink(&self, path: &Path, target: &[u8]) -> io::Result<()> {
        self.tell("making", path, self.files.make_symlink(path, target))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.tell("linking", to, self.files.link(from, to))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.tell("renaming", from, self.files.rename(from, to))
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        self.tell("exchanging", one, self.files.exchange(one, other))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.tell("removing", path, self.files.remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.tell("removing", path, self.files.remove_dir(path))
    }

    fn change(&self, path: &Path, change: &Change) -> io::Result<()> {
        self.tell("changing", path, self.files.change(path, change))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.tell("syncing", path, self.files.sync_dir(path))
    }

    fn space(&self) -> io::Result<Space> {
        self.tell("looking at", Path::new(""), self.files.space())
    }

    fn limits(&self) -> io::Result<Limits> {
        self.tell("looking at", Path::new(""), self.files.limits())
    }

    fn allocation(&self) -> io::Result<Allocation> {
        self.tell("looking at", Path::new(""), self.files.allocation())
    }

    fn writes_in_place(&self) -> bool {
        self.files.writes_in_place()
    }

    fn xattr(&self, path: &Path, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.tell("looking at", path, self.files.xattr(path, name))
    }

    fn xattr_names(&self, path: &Path) -> io::Result<Vec<Vec<u8>>> {
        self.tell("looking at", path, self.files.xattr_names(path))
    }

    fn set_xattr(&self, path: &Path, name: &[u8], value: &[u8]) -> io::Result<()> {
        self.tell("changing", path, self.files.set_xattr(path, name, value))
    }

    fn remove_xattr(&self, path: &Path, name: &[u8]) -> io::Result<()> {
        self.tell("changing", path, self.files.remove_xattr(path, name))
    }

    fn sync_all(&self) -> io::Result<()> {
        self.tell("syncing", Path::new(""), self.files.sync_all())
    }

    fn open_max(&self) -> usize {
        self.files.open_max()
    }

    fn has_sync_all(&self) -> bool {
        self.files.has_sync_all()
    }

    fn wait_while_frozen(&self) {
        self.files.wait_while_frozen();
    }

    fn inode_numbers(&self) -> InodeNumbers {
        self.files.inode_numbers()
    }
}

/// What somebody has hold of, with errors that name what it was called then.
struct NamedHeld {
    held: Box<dyn Held>,
    path: PathBuf,
}

impl NamedHeld {
    fn tell<T>(&self, doing: &'static str, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| told(doing, &self.path, None, error))
    }
}

impl Held for NamedHeld {
    fn metadata(&self) -> io::Result<Metadata> {
        self.tell("looking at", self.held.metadata())
    }

    fn open(&self, write: bool) -> io::Result<Arc<dyn OpenFile>> {
        let file = self.tell("opening", self.held.open(write))?;
        Ok(Arc::new(NamedFile { file, path: self.path.clone() }))
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        self.tell("changing", self.held.change(change))
    }

    fn read_dir(&self) -> io::Result<Vec<DirEntry>> {
        self.tell("listing", self.held.read_dir())
    }

    fn read_link(&self) -> io::Result<Vec<u8>> {
        self.tell("reading", self.held.read_link())
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.tell("syncing", self.held.sync_dir())
    }

    fn xattr(&self, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.tell("looking at", self.held.xattr(name))
    }

    fn xattr_names(&self) -> io::Result<Vec<Vec<u8>>> {
        self.tell("looking at", self.held.xattr_names())
    }

    fn set_xattr(&self, name: &[u8], value: &[u8]) -> io::Result<()> {
        self.tell("changing", self.held.set_xattr(name, value))
    }

    fn remove_xattr(&self, name: &[u8]) -> io::Result<()> {
        self.tell("changing", self.held.remove_xattr(name))
    }
}

/// An open file, with errors that name it.
struct NamedFile {
    file: Arc<dyn OpenFile>,
    path: PathBuf,
}

impl NamedFile {
    fn tell<T>(&self, doing: &'static str, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| told(doing, &self.path, None, error))
    }

    fn tell_at<T>(&self, doing: &'static str, at: u64, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| told(doing, &self.path, Some(at), error))
    }
}

impl OpenFile for NamedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.tell_at("reading", offset, self.file.read_at(into, offset))
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.tell_at("writing", offset, self.file.write_at(from, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.tell("syncing", self.file.sync_data())
    }

    fn sync(&self) -> io::Result<()> {
        self.tell("syncing", self.file.sync())
    }

    fn write_through_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.tell_at("writing through", offset, self.file.write_through_at(from, offset))
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.tell("resizing", self.file.set_len(bytes))
    }

    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.tell_at("reserving room in", offset, self.file.reserve(offset, bytes))
    }

    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.tell_at("emptying", offset, self.file.punch(offset, bytes))
    }

    fn zero(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.tell_at("zeroing", offset, self.file.zero(offset, bytes))
    }

    fn seek(&self, offset: u64, what: Seek) -> io::Result<Option<u64>> {
        self.tell_at("looking at", offset, self.file.seek(offset, what))
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.tell("looking at", self.file.metadata())
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        self.tell("changing", self.file.change(change))
    }

    fn space(&self) -> io::Result<Space> {
        self.tell("looking at", self.file.space())
    }

    fn allocation(&self) -> io::Result<Allocation> {
        self.tell("looking at", self.file.allocation())
    }

    fn writes_in_place(&self) -> bool {
        self.file.writes_in_place()
    }

    fn read_full_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.tell_at("reading", offset, self.file.read_full_at(into, offset))
    }

    fn write_all_at(&self, from: &[u8], offset: u64) -> io::Result<()> {
        self.tell_at("writing", offset, self.file.write_all_at(from, offset))
    }
}

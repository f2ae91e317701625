//! Applying a window to the home.
//!
//! Promise: when [`Applier::run`] returns, the home has everything in the window, durably. Running
//! it again, after any part of it, changes nothing.
//! Never: applies a byte that the device's log does not have.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use holdfast_io::{Change, Files, Kind, OpenFile, OpenHow};
use holdfast_log::{Lsn, ReadError};

use crate::clean::plan::{Contents, Make, Step, Window, is_orphan};
use crate::clean::{Act, CleanError};
use crate::extents::{Piece, Source};
use crate::names::{ORPHANS_NAME, to_path};
use crate::volume::DirectoryVolume;

/// Bytes put together for one write of the home.
const BATCH_BYTES: usize = 1 << 20;

/// Why a file was not filled.
enum Failed {
    Home(io::Error),
    Log(ReadError),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Home(error)
    }
}

impl From<ReadError> for Failed {
    fn from(error: ReadError) -> Failed {
        Failed::Log(error)
    }
}

/// Applies one window.
pub(crate) struct Applier<'a> {
    volume: &'a DirectoryVolume,
    home: &'a dyn Files,
    /// Directories whose names changed since the last barrier.
    directories: BTreeSet<PathBuf>,
    batch: Vec<u8>,
    /// Where the window begins, or further on by as many bytes of the log as were gathered.
    gathered: Lsn,
    /// Bytes written to the home.
    bytes: u64,
}

impl<'a> Applier<'a> {
    /// Applies a window that begins at `from`.
    pub(crate) fn new(volume: &'a DirectoryVolume, from: Lsn) -> Applier<'a> {
        let (home, directories, batch) = (&*volume.home, BTreeSet::new(), Vec::new());
        Applier { volume, home, directories, batch, gathered: from, bytes: 0 }
    }

    /// Applies the window and makes it durable. Returns the bytes written.
    pub(crate) fn run(mut self, window: &Window) -> Result<u64, CleanError> {
        for step in &window.steps {
            self.step(step)?;
        }
        for contents in window.contents.values() {
            self.fill(contents)?;
        }
        self.sync_directories()?;
        Ok(self.bytes)
    }

    /// Changes names under the tree's lock, so that nobody looks for a file in between.
    fn step(&mut self, step: &Step) -> Result<(), CleanError> {
        if *step == Step::Barrier {
            return self.sync_directories();
        }
        if *step == Step::Nothing {
            return Ok(());
        }
        let mut names = self.volume.names_mut();
        match step {
            Step::Make { node, parent, path, make } => {
                self.make(path, make)?;
                names.came_home(*node, *parent, path);
            }
            Step::Link { node, parent, from, to } => {
                self.link(from, to)?;
                names.came_home(*node, *parent, to);
            }
            Step::Remove { node, path } => {
                self.remove(path, false)?;
                names.left_home(self.home, *node, path);
            }
            Step::RemoveDir { node, path } => {
                self.remove(path, true)?;
                names.left_home(self.home, *node, path);
            }
            Step::Rename { node, replaced, parent, from, to } => {
                self.rename(from, to)?;
                names.left_home(self.home, *replaced, to);
                names.left_home(self.home, *node, from);
                names.came_home(*node, *parent, to);
            }
            Step::Barrier | Step::Nothing => {}
        }
        Ok(())
    }

    /// A node that is there already was made by this very step, before a crash; owner and mode may
    /// still be missing then, so they are set either way.
    fn make(&mut self, path: &[u8], make: &Make) -> Result<(), CleanError> {
        let path = self.changed(path);
        let fail = |act, error| CleanError::home(act, &path, error);
        let made = match make.kind {
            Kind::Directory => self.home.make_dir(&path, make.mode),
            Kind::Symlink => self.home.make_symlink(&path, &make.target),
            kind => self.home.make_node(&path, kind, make.mode, make.rdev),
        };
        unless(made, io::ErrorKind::AlreadyExists).map_err(|error| fail(Act::Make, error))?;
        // A change of owner clears the set-id bits, so the mode comes last.
        let owner = Change { uid: Some(make.uid), gid: Some(make.gid), ..Change::default() };
        self.home.change(&path, &owner).map_err(|error| fail(Act::Change, error))?;
        if make.kind != Kind::Symlink {
            let mode = Change { mode: Some(make.mode), ..Change::default() };
            self.home.change(&path, &mode).map_err(|error| fail(Act::Change, error))?;
        }
        Ok(())
    }

    /// A name that is there already was made by this very step: a window touches no name twice.
    fn link(&mut self, from: &[u8], to: &[u8]) -> Result<(), CleanError> {
        let (from, to) = (to_path(from.to_vec()), self.changed(to));
        unless(self.home.link(&from, &to), io::ErrorKind::AlreadyExists)
            .map_err(|error| CleanError::home(Act::Link, &to, error))
    }

    /// A name that is missing was removed by this very step.
    fn remove(&mut self, path: &[u8], directory: bool) -> Result<(), CleanError> {
        let path = self.changed(path);
        let removed = match directory {
            true => self.home.remove_dir(&path),
            false => self.home.remove_file(&path),
        };
        unless(removed, io::ErrorKind::NotFound)
            .map_err(|error| CleanError::home(Act::Remove, &path, error))
    }

    /// A source that is missing was moved by this very step.
    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), CleanError> {
        let (source, target) = (self.changed(from), self.changed(to));
        let fail = |error| CleanError::home(Act::Rename, &target, error);
        if is_orphan(to) {
            // An orphan's name is new: if it is there, this step has been done.
            self.make_orphans()?;
            if exists(self.home, &target).map_err(fail)? {
                return Ok(());
            }
        }
        unless(self.home.rename(&source, &target), io::ErrorKind::NotFound).map_err(fail)
    }

    /// The orphans' directory is made when it is first needed; detaching removes it.
    fn make_orphans(&mut self) -> Result<(), CleanError> {
        let path = self.changed(ORPHANS_NAME);
        unless(self.home.make_dir(&path, 0o700), io::ErrorKind::AlreadyExists)
            .map_err(|error| CleanError::home(Act::Make, &path, error))
    }

    /// The path, and its directory remembered for the next sync.
    fn changed(&mut self, path: &[u8]) -> PathBuf {
        let path = to_path(path.to_vec());
        self.directories.insert(path.parent().unwrap_or(Path::new("")).to_path_buf());
        path
    }

    /// Makes the names changed since the last time durable.
    fn sync_directories(&mut self) -> Result<(), CleanError> {
        for directory in std::mem::take(&mut self.directories) {
            // A directory that a later step removed or moved has nothing left to sync here.
            unless(self.home.sync_dir(&directory), io::ErrorKind::NotFound)
                .map_err(|error| CleanError::home(Act::Sync, &directory, error))?;
        }
        Ok(())
    }

    /// Gives a node its bytes and attributes, durably; one sync a file.
    fn fill(&mut self, contents: &Contents) -> Result<(), CleanError> {
        let path = to_path(contents.path.clone());
        if !has_bytes(contents) {
            return self.change(&path, contents);
        }
        let how = OpenHow { write: true, ..OpenHow::default() };
        let file = self.home.open(&path, how);
        let file = file.map_err(|error| CleanError::home(Act::Open, &path, error))?;
        self.fill_file(&*file, contents).map_err(|failed| match failed {
            Failed::Home(error) => CleanError::home(Act::Write, &path, error),
            Failed::Log(error) => CleanError::Read(error),
        })?;
        file.sync_data().map_err(|error| CleanError::home(Act::Sync, &path, error))
    }

    /// Attributes of a node without new bytes.
    fn change(&mut self, path: &Path, contents: &Contents) -> Result<(), CleanError> {
        if contents.change == Change::default() {
            return Ok(());
        }
        self.home
            .change(path, &contents.change)
            .map_err(|error| CleanError::home(Act::Change, path, error))?;
        // The directory above is what a file system without open file syncs anyway; a directory's
        // own attributes are its own.
        self.changed(path.as_os_str().as_bytes());
        if contents.made {
            return Ok(());
        }
        let kind = self.home.metadata(path).map(|metadata| metadata.kind);
        match kind.map_err(|error| CleanError::home(Act::Change, path, error))? {
            Kind::Directory => {
                self.directories.insert(path.to_path_buf());
                Ok(())
            }
            Kind::File => {
                let file = self.home.open(path, OpenHow::default());
                file.and_then(|file| file.sync_data())
                    .map_err(|error| CleanError::home(Act::Sync, path, error))
            }
            _ => Ok(()),
        }
    }

    /// The order matters: first nothing old is left behind the cut, then room, bytes, and last the
    /// end, which may lie behind the last byte.
    fn fill_file(&mut self, file: &dyn OpenFile, contents: &Contents) -> Result<(), Failed> {
        if let Some(cut_bytes) = contents.cut_bytes
            && cut_bytes < file.metadata()?.size_bytes
        {
            file.set_len(cut_bytes)?;
        }
        for (offset, bytes) in &contents.reserved {
            file.reserve(*offset, *bytes)?;
        }
        self.write_pieces(file, contents)?;
        let end_bytes = contents.end_bytes();
        if file.metadata()?.size_bytes < end_bytes {
            file.set_len(end_bytes)?;
        }
        if contents.change != Change::default() {
            file.change(&contents.change)?;
        }
        Ok(())
    }

    /// Writes neighbouring pieces as one.
    fn write_pieces(&mut self, file: &dyn OpenFile, contents: &Contents) -> Result<(), Failed> {
        let mut start = 0;
        for piece in contents.extents.iter() {
            let next = start + self.batch.len() as u64;
            let fits = self.batch.len() as u64 + piece.bytes <= BATCH_BYTES as u64;
            if is_punched(&piece) {
                self.flush(file, start)?;
                punch(file, &piece)?;
                start = piece.offset + piece.bytes;
                continue;
            }
            if piece.offset != next || !fits {
                self.flush(file, start)?;
                start = piece.offset;
            }
            start = self.gather(file, &piece, start)?;
        }
        Ok(self.flush(file, start)?)
    }

    /// Adds a piece to the batch; a piece larger than a batch is written in parts. Returns where
    /// the batch starts now.
    fn gather(&mut self, file: &dyn OpenFile, piece: &Piece, start: u64) -> Result<u64, Failed> {
        let (mut start, mut done) = (start, 0);
        while done < piece.bytes {
            let room = BATCH_BYTES - self.batch.len();
            let part = room.min(usize::try_from(piece.bytes - done).unwrap_or(room));
            let from = self.batch.len();
            self.batch.resize(from + part, 0);
            if piece.source == Source::Log {
                let at = piece.at.advance(done);
                self.volume.log.copy_bytes(at, &mut self.batch[from..])?;
                self.gathered = self.gathered.advance(part as u64);
            }
            done += part as u64;
            if self.batch.len() == BATCH_BYTES {
                self.flush(file, start)?;
                start = piece.offset + done;
            }
        }
        Ok(start)
    }

    /// Writes the batch at `start`.
    fn flush(&mut self, file: &dyn OpenFile, start: u64) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        file.write_all_at(&self.batch, start)?;
        self.bytes += self.batch.len() as u64;
        self.volume.space.came_home(self.gathered);
        self.batch.clear();
        Ok(())
    }
}

/// True if the home makes the piece's zeros itself: the room for them is given back or, where they
/// are so many that writing them would take long, given back and taken again.
fn is_punched(piece: &Piece) -> bool {
    match piece.source {
        Source::Log => false,
        Source::Zeros => piece.bytes > BATCH_BYTES as u64,
        Source::Hole => true,
    }
}

/// Lets the home make the zeros.
fn punch(file: &dyn OpenFile, piece: &Piece) -> io::Result<()> {
    file.punch(piece.offset, piece.bytes)?;
    match piece.source {
        Source::Zeros => file.reserve(piece.offset, piece.bytes),
        Source::Log | Source::Hole => Ok(()),
    }
}

/// True if the file itself, and not only its attributes, has to be opened.
fn has_bytes(contents: &Contents) -> bool {
    !contents.extents.is_empty() || contents.size_bytes.is_some() || !contents.reserved.is_empty()
}

fn exists(home: &dyn Files, path: &Path) -> io::Result<bool> {
    match home.metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Success if it failed in the way that means that it has been done before.
fn unless(result: io::Result<()>, done: io::ErrorKind) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == done => Ok(()),
        result => result,
    }
}

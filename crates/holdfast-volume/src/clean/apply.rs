//! Applying a window to the home.
//!
//! Promise: when [`Applier::run`] returns, the home has everything in the window, durably. Running
//! it again, after any part of it, changes nothing.
//! Never: applies a byte that the device's log does not have.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use holdfast_io::acl::{ACCESS, DEFAULT};
use holdfast_io::{Change, Files, Kind, OpenFile, OpenHow};
use holdfast_log::{Lsn, ReadError};

use crate::clean::plan::{Contents, Make, Step, Window, is_orphan};
use crate::clean::{Act, CleanError};
use crate::extents::{Piece, Source};
use crate::names::{Names, ORPHANS_NAME, Place, to_path};
use crate::record::{Op, Record};
use crate::tree::{Errno, NodeId};
use crate::volume::DirectoryVolume;
use crate::xattr::{clear, is_taken, place};

/// Bytes put together for one write of the home.
const BATCH_BYTES: usize = 1 << 20;

/// So many files of one window are made durable together: one sync of the home's file system costs
/// less than theirs. Fewer are not, because it takes along what others have written there.
const TOGETHER_MIN: usize = 16;

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

/// What was under way for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A change of its names.
    Name,
    /// Everything else that there is for it.
    Contents,
    /// The bytes at this position of the log.
    Bytes(Lsn),
    Size(u64),
    Room(u64, u64),
    Attributes,
    /// Extended attributes.
    Labels,
}

/// Whose records are to blame if the home refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blame {
    node: NodeId,
    what: What,
}

impl Blame {
    /// Whether this record is among them. `data` is where its data lies, `frame` where its frame.
    pub(crate) fn falls_on(&self, record: &Record<'_>, frame: Lsn, data: Lsn) -> bool {
        let is_name = record.changes_names();
        self.node == record.node
            && match (self.what, record.op) {
                (What::Name, _) => is_name,
                (What::Contents, _) => !is_name,
                (What::Bytes(at), Op::Write { bytes, .. }) => {
                    data <= at && at < data.advance(bytes)
                }
                (What::Bytes(at), Op::Zero { .. }) => frame == at,
                (What::Size(size), Op::SetSize { size_bytes }) => size == size_bytes,
                (What::Room(from, room), Op::Reserve { offset, bytes }) => {
                    (from, room) == (offset, bytes)
                }
                (What::Attributes, Op::Change { .. }) => true,
                (What::Labels, Op::SetXattr { .. } | Op::RemoveXattr { .. }) => true,
                _ => false,
            }
    }

    /// All records about the node that change no name, where none is to blame alone.
    pub(crate) fn widened(self) -> Option<Blame> {
        let narrow = !matches!(self.what, What::Name | What::Contents);
        narrow.then_some(Blame { what: What::Contents, ..self })
    }
}

/// Applies one window.
pub(crate) struct Applier<'a> {
    volume: &'a DirectoryVolume,
    home: &'a dyn Files,
    /// Directories whose names changed since the last barrier.
    directories: BTreeSet<PathBuf>,
    batch: Vec<u8>,
    /// Bytes written to the home.
    bytes: u64,
    /// Whether a directory of the home hands lists down to what is made there.
    hands_down: HashMap<NodeId, bool>,
    /// Nodes whose lists to hand down this window sets or takes away, behind all changes of names.
    relisted: BTreeSet<NodeId>,
    /// Extended attributes changed, which only a sync of everything makes durable.
    labelled: bool,
    /// The home's file system syncs everything when it is asked to.
    syncs_all: bool,
    /// Files and directories are not synced each, but all of them at the end.
    together: bool,
    /// Who is to blame for an error, if it is not the home as a whole.
    pub(crate) blame: Option<Blame>,
}

impl<'a> Applier<'a> {
    pub(crate) fn new(volume: &'a DirectoryVolume) -> Applier<'a> {
        let (home, directories, batch) = (&*volume.home, BTreeSet::new(), Vec::new());
        Applier {
            volume,
            home,
            directories,
            batch,
            bytes: 0,
            hands_down: HashMap::new(),
            relisted: BTreeSet::new(),
            labelled: false,
            syncs_all: false,
            together: false,
            blame: None,
        }
    }

    /// Applies the window and makes it durable. Returns the bytes written.
    pub(crate) fn run(&mut self, window: &Window) -> Result<u64, CleanError> {
        let contents = &window.contents;
        let listed = |contents: &Contents| contents.xattrs.contains_key(DEFAULT);
        self.relisted =
            contents.iter().filter(|(_, it)| listed(it)).map(|(node, _)| *node).collect();
        for step in &window.steps {
            self.blame = step.node().map(|node| Blame { node, what: What::Name });
            self.step(step, window.repeats)?;
        }
        self.syncs_all = self.home.has_sync_all();
        self.together = self.syncs_all && window.contents.len() >= TOGETHER_MIN;
        for (node, contents) in &window.contents {
            self.blame = Some(Blame { node: *node, what: What::Contents });
            self.fill(contents)?;
        }
        self.blame = None;
        for (path, at_ns) in &window.directory_times {
            self.set_directory_time(path, *at_ns)?;
        }
        if self.labelled || self.together {
            let fail = |error| CleanError::home(Act::Sync, Path::new(""), error);
            self.home.sync_all().map_err(fail)?;
        }
        if !self.together {
            self.sync_directories()?;
        }
        Ok(self.bytes)
    }

    /// Changes names under the tree's lock, so that nobody looks for a file in between.
    fn step(&mut self, step: &Step, repeats: bool) -> Result<(), CleanError> {
        if *step == Step::Barrier {
            return self.sync_directories();
        }
        if *step == Step::Nothing {
            return Ok(());
        }
        if let Step::Exchange { from, at, .. } = step {
            self.mark_exchange(from, *at)?;
        }
        let mut names = self.volume.names_mut();
        match step {
            Step::Make { node, parent, path, make, over } => {
                if let Some(old) = over.filter(|_| !is_at_home(&names, *node, *parent, path)) {
                    self.remove(path, false)?;
                    names.left_home(self.home, old, path);
                }
                self.make(*parent, path, make, repeats)?;
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
            Step::Move { node, parent, from, via, to } => {
                self.move_to(via, from, to)?;
                names.left_home(self.home, *node, from);
                names.came_home(*node, *parent, to);
            }
            Step::Exchange { nodes: [one, other], parents, from, to, at } => {
                self.exchange(from, to, *at)?;
                names.left_home(self.home, *one, from);
                names.left_home(self.home, *other, to);
                names.came_home(*one, parents[1], to);
                names.came_home(*other, parents[0], from);
            }
            Step::Barrier | Step::Nothing => {}
        }
        Ok(())
    }

    /// A node that is there already was made by this very step, before a crash; owner and mode may
    /// still be missing then, so they are set either way.
    fn make(
        &mut self,
        parent: NodeId,
        path: &[u8],
        make: &Make,
        repeats: bool,
    ) -> Result<(), CleanError> {
        if is_orphan(path) {
            self.make_orphans()?;
        }
        let path = self.changed(path);
        let fail = |act, error| CleanError::home(act, &path, error);
        let made = match make.kind {
            Kind::Directory => self.make_dir(parent, &path, make.mode),
            Kind::Symlink => self.home.make_symlink(&path, &make.target),
            kind => self.home.make_node(&path, kind, make.mode, make.rdev),
        };
        unless(made, io::ErrorKind::AlreadyExists).map_err(|error| fail(Act::Make, error))?;
        if make.kind != Kind::Symlink && (repeats || self.hands_down(parent, &path)?) {
            self.disinherit(&path, make.kind)?;
        }
        // A change of owner clears the set-id bits, so the mode comes last.
        let owner = Change { uid: Some(make.uid), gid: Some(make.gid), ..Change::default() };
        self.home.change(&path, &owner).map_err(|error| fail(Act::Change, error))?;
        if make.kind != Kind::Symlink {
            let mode = Change { mode: Some(make.mode), ..Change::default() };
            self.home.change(&path, &mode).map_err(|error| fail(Act::Change, error))?;
        }
        Ok(())
    }

    /// Makes a directory. A list that the home still hands down, and no longer will when this
    /// window is applied, may be longer than what a new directory can have: then it goes first.
    fn make_dir(&mut self, parent: NodeId, path: &Path, mode: u32) -> io::Result<()> {
        match self.home.make_dir(path, mode) {
            Err(error)
                if error.kind() == io::ErrorKind::StorageFull
                    && self.relisted.contains(&parent) =>
            {
                let above = path.parent().unwrap_or(Path::new(""));
                self.home.remove_xattr(above, DEFAULT)?;
                self.hands_down.insert(parent, false);
                self.home.make_dir(path, mode)
            }
            made => made,
        }
    }

    /// Whether the home gives what is made here lists. Names come before attributes in a window, so
    /// that stays as it is while names are made.
    fn hands_down(&mut self, directory: NodeId, path: &Path) -> Result<bool, CleanError> {
        if let Some(known) = self.hands_down.get(&directory) {
            return Ok(*known);
        }
        let above = path.parent().unwrap_or(Path::new(""));
        let list = match self.home.xattr(above, DEFAULT) {
            Err(error) if is_without_lists(&error) => None,
            list => list.map_err(|error| CleanError::home(Act::Make, path, error))?,
        };
        self.hands_down.insert(directory, list.is_some());
        Ok(list.is_some())
    }

    /// Takes away what the home handed down: which lists a node has is the log's to say.
    fn disinherit(&self, path: &Path, kind: Kind) -> Result<(), CleanError> {
        let lists = if kind == Kind::Directory { &[ACCESS, DEFAULT][..] } else { &[ACCESS] };
        for list in lists {
            match self.home.remove_xattr(path, list) {
                Err(error) if is_without_lists(&error) => {}
                removed => removed.map_err(|error| CleanError::home(Act::Make, path, error))?,
            }
        }
        Ok(())
    }

    /// Gives a node its extended attributes.
    fn label(&mut self, path: &Path, contents: &Contents) -> Result<(), CleanError> {
        if contents.xattrs.is_empty() {
            return Ok(());
        }
        self.labelled = true;
        let gone = contents.xattrs.iter().filter(|(_, value)| value.is_none());
        let given =
            contents.xattrs.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let given: Vec<_> = given.map(|(name, value)| (name.as_slice(), value)).collect();
        let mut one_by_one =
            given.iter().map(|(name, value)| self.home.set_xattr(path, name, value));
        let done = clear(self.home, path, gone.map(|(name, _)| name.as_slice()))
            .and_then(|()| one_by_one.try_for_each(|set| set));
        let done = match done {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => self.place(path, &given),
            done => done,
        };
        done.map_err(|error| CleanError::home(Act::Change, path, error))?;
        let synced = if self.syncs_all { Ok(()) } else { self.sync_labels(path) };
        synced.map_err(|error| CleanError::home(Act::Sync, path, error))
    }

    /// Whether all of them fit depends on what they come after, so the way goes over none of them.
    /// If the home takes them not even then, the node has what it had.
    fn place(&self, path: &Path, given: &[(&[u8], &Vec<u8>)]) -> io::Result<()> {
        is_taken(self.home, given)?;
        let mut before = Vec::new();
        for (name, _) in given {
            before.extend(self.home.xattr(path, name)?.map(|value| (*name, value)));
        }
        let names = || given.iter().map(|(name, _)| *name);
        clear(self.home, path, names())?;
        let placed = place(self.home, path, given);
        if placed.is_err() {
            clear(self.home, path, names())?;
            place(self.home, path, &before)?;
        }
        placed
    }

    /// Makes extended attributes durable by themselves. What is neither file nor directory has no
    /// sync, and is left to a sync of all.
    fn sync_labels(&self, path: &Path) -> io::Result<()> {
        match self.home.metadata(path)?.kind {
            Kind::Directory => self.home.sync_dir(path),
            Kind::File => self.home.open(path, OpenHow::default())?.sync(),
            _ => Ok(()),
        }
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
        unless(self.home.rename(&source, &target), io::ErrorKind::NotFound)
            .map_err(|error| CleanError::home(Act::Rename, &target, error))
    }

    /// If something is under the new name, it is what was to come there, because nothing else
    /// could: this step has been done, or undoes what others of the window did. A plain move is
    /// told by its source.
    fn move_to(
        &mut self,
        via: &BTreeSet<Vec<u8>>,
        from: &[u8],
        to: &[u8],
    ) -> Result<(), CleanError> {
        if via.len() == 2 && from != to && !is_orphan(to) {
            return self.rename(from, to);
        }
        if is_orphan(to) {
            self.make_orphans()?;
        }
        let target = self.changed(to);
        let fail = |error| CleanError::home(Act::Rename, &target, error);
        if exists(self.home, &target).map_err(fail)? {
            return Ok(());
        }
        for from in via.iter().filter(|from| *from != to) {
            let source = self.changed(from);
            match self.home.rename(&source, &target) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => return result.map_err(fail),
            }
        }
        Ok(())
    }

    /// Before two names change places, which inode stands under the first is written down, durably,
    /// in the target of a symbolic link: so a repetition can tell whether they have.
    fn mark_exchange(&mut self, from: &[u8], at: Lsn) -> Result<(), CleanError> {
        let marker = exchange_marker(at);
        let fail = |error| CleanError::home(Act::Rename, &marker, error);
        if exists(self.home, &marker).map_err(fail)? {
            return Ok(());
        }
        let inode = self.inode_of(from)?;
        self.make_orphans()?;
        self.home.make_symlink(&marker, inode.to_string().as_bytes()).map_err(fail)?;
        for directory in [ORPHANS_NAME, b""] {
            self.home.sync_dir(&to_path(directory.to_vec())).map_err(fail)?;
        }
        Ok(())
    }

    /// If the first name stands for the inode that it stood for before.
    fn exchange(&mut self, from: &[u8], to: &[u8], at: Lsn) -> Result<(), CleanError> {
        let marker = exchange_marker(at);
        let before = self.home.read_link(&marker);
        let before = before.map_err(|error| CleanError::home(Act::Rename, &marker, error))?;
        let inode = self.inode_of(from)?;
        let (one, other) = (self.changed(from), self.changed(to));
        if before != inode.to_string().as_bytes() {
            return Ok(());
        }
        let exchanged = self.home.exchange(&one, &other);
        exchanged.map_err(|error| CleanError::home(Act::Rename, &other, error))
    }

    fn inode_of(&self, path: &[u8]) -> Result<u64, CleanError> {
        let path = to_path(path.to_vec());
        let metadata = self.home.metadata(&path);
        Ok(metadata.map_err(|error| CleanError::home(Act::Rename, &path, error))?.inode)
    }

    /// The orphans' directory is made when it is first needed; detaching removes it.
    fn make_orphans(&mut self) -> Result<(), CleanError> {
        let path = self.changed(ORPHANS_NAME);
        crate::own::make(self.home).map_err(|error| CleanError::home(Act::Make, &path, error))
    }

    /// The path, and its directory remembered for the next sync.
    fn changed(&mut self, path: &[u8]) -> PathBuf {
        let path = to_path(path.to_vec());
        self.directories.insert(path.parent().unwrap_or(Path::new("")).to_path_buf());
        path
    }

    /// Makes the names changed since the last time durable.
    fn sync_directories(&mut self) -> Result<(), CleanError> {
        self.blame = None;
        for directory in std::mem::take(&mut self.directories) {
            // A directory that a later step removed or moved has nothing left to sync here.
            unless(self.home.sync_dir(&directory), io::ErrorKind::NotFound)
                .map_err(|error| CleanError::home(Act::Sync, &directory, error))?;
        }
        Ok(())
    }

    /// Gives a node its bytes and attributes, durably unless all are synced together.
    fn fill(&mut self, contents: &Contents) -> Result<(), CleanError> {
        let path = to_path(contents.path.clone());
        if !has_bytes(contents) {
            self.does(What::Attributes);
            self.change(&path, contents)?;
            self.does(What::Labels);
            return self.label(&path, contents);
        }
        let how = OpenHow { write: true, ..OpenHow::default() };
        let file = self.home.open(&path, how);
        let file = file.map_err(|error| CleanError::home(Act::Open, &path, error))?;
        self.fill_file(&*file, contents).map_err(|failed| match failed {
            Failed::Home(error) => CleanError::home(Act::Write, &path, error),
            Failed::Log(error) => CleanError::Read(error),
        })?;
        if !self.together {
            let blame = self.blame.take();
            file.sync_data().map_err(|error| CleanError::home(Act::Sync, &path, error))?;
            self.blame = blame;
        }
        self.does(What::Labels);
        self.label(&path, contents)
    }

    /// What is under way for the node whose turn it is.
    fn does(&mut self, what: What) {
        self.blame = self.blame.map(|blame| Blame { what, ..blame });
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
        let kind = self.home.metadata(path).map(|metadata| metadata.kind);
        match kind.map_err(|error| CleanError::home(Act::Change, path, error))? {
            Kind::Directory => {
                self.directories.insert(path.to_path_buf());
                Ok(())
            }
            Kind::File if !self.together && !contents.made => {
                let file = self.home.open(path, OpenHow::default());
                file.and_then(|file| file.sync_data())
                    .map_err(|error| CleanError::home(Act::Sync, path, error))
            }
            _ => Ok(()),
        }
    }

    /// A directory that is missing has gone in this window, or in one that this one repeats.
    fn set_directory_time(&mut self, path: &[u8], at_ns: i64) -> Result<(), CleanError> {
        let path = to_path(path.to_vec());
        let change = Change { modified_ns: Some(at_ns.into()), ..Change::default() };
        unless(self.home.change(&path, &change), io::ErrorKind::NotFound)
            .map_err(|error| CleanError::home(Act::Change, &path, error))?;
        self.directories.insert(path);
        Ok(())
    }

    /// The order matters: first nothing old is left behind the cut, then room, bytes, and last the
    /// end, which may lie behind the last byte.
    fn fill_file(&mut self, file: &dyn OpenFile, contents: &Contents) -> Result<(), Failed> {
        self.does(What::Size(contents.cut_bytes.unwrap_or(0)));
        if let Some(cut_bytes) = contents.cut_bytes
            && cut_bytes < file.metadata()?.size_bytes
        {
            file.set_len(cut_bytes)?;
        }
        for (offset, bytes) in &contents.reserved {
            self.does(What::Room(*offset, *bytes));
            file.reserve(*offset, *bytes)?;
        }
        self.write_pieces(file, contents)?;
        let end_bytes = contents.end_bytes();
        self.does(What::Size(end_bytes));
        if file.metadata()?.size_bytes < end_bytes {
            file.set_len(end_bytes)?;
        }
        self.does(What::Attributes);
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
                self.does(What::Bytes(piece.at));
                punch(file, &piece)?;
                start = piece.offset + piece.bytes;
                continue;
            }
            if piece.offset != next || !fits {
                self.flush(file, start)?;
                start = piece.offset;
            }
            if self.batch.is_empty() {
                self.does(What::Bytes(piece.at));
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

/// True if this process has brought the node home under this name.
fn is_at_home(names: &Names, node: NodeId, parent: NodeId, path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let is_here = |place: &Place| place.parent == parent && *place.name == *name;
    names.entry(node).is_some_and(|entry| entry.home.iter().any(is_here))
}

/// Where it is written down how an exchange found the home.
pub(crate) fn exchange_marker(at: Lsn) -> PathBuf {
    to_path(ORPHANS_NAME.to_vec()).join(format!("exchange-{at}"))
}

/// A home whose file system has no lists hands none down.
fn is_without_lists(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NOTSUP.0)
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

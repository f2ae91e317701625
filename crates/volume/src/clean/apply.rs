//! Applying a window to the home.
//!
//! Promise: when [`Applier::run`] returns, the home has everything in the window, durably. Running
//! it again, after any part of it, changes nothing. What is read or changed of a node is the inode
//! that it is known by ([`crate::names`]).
//! Never: applies a byte that the device's log does not have.

mod bytes;
mod make;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_io::acl::DEFAULT;
use holdfast_io::{Change, Files, Held, InodeNumbers, Kind, Metadata, OpenFile};
use holdfast_log::{Lsn, ReadError};

use crate::changes::xattr::{clear, place};
use crate::clean::error::{Act, CleanError};
use crate::clean::pace::Pace;
use crate::clean::plan::{Contents, Step, Window, is_orphan};
use crate::names::Names;
use crate::names::paths::to_path;
use crate::own::ORPHANS_NAME;
use crate::record::{Op, Record};
use crate::volume::DirectoryVolume;
use holdfast_io::tree::NodeId;
use holdfast_io::tree::other_inode;

/// Bytes put together for one write of the home.
const BATCH_BYTES: usize = 1 << 20;

/// So many files and directories of one window are made durable together: one sync of the home's
/// file system costs less than theirs. Fewer are not, because it takes along what others have
/// written there.
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
    /// Another node comes to stand under its name.
    Replaced,
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
        if self.what == What::Replaced {
            return match record.op {
                Op::Rename { replaced: other, .. } | Op::Exchange { other, .. } => {
                    other == self.node
                }
                _ => false,
            };
        }
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
                    offset <= from && from + room <= offset + bytes
                }
                (What::Attributes, Op::Change { .. }) => true,
                (What::Labels, Op::SetXattr { .. } | Op::RemoveXattr { .. }) => true,
                _ => false,
            }
    }

    /// Who is to blame where nobody is so alone: all records about the node that change no name, or
    /// for a name those that put another node in its place.
    pub(crate) fn widened(self) -> Option<Blame> {
        let what = match self.what {
            What::Contents | What::Replaced => return None,
            What::Name => What::Replaced,
            _ => What::Contents,
        };
        Some(Blame { what, ..self })
    }
}

/// Applies one window.
pub(crate) struct Applier<'a> {
    volume: &'a DirectoryVolume,
    pace: Pace<'a>,
    home: &'a dyn Files,
    /// Directories whose names changed since the last barrier.
    directories: BTreeSet<PathBuf>,
    batch: Vec<u8>,
    /// Bytes written to the home.
    bytes: u64,
    /// Whether a directory of the home hands lists down to what is made there.
    hands_down: HashMap<NodeId, bool>,
    /// Which inode each node was that this window takes names from, and of which kind.
    leaving: HashMap<NodeId, (u64, Option<Kind>)>,
    /// Nodes whose lists to hand down this window sets or takes away, behind all changes of names.
    relisted: BTreeSet<NodeId>,
    /// The home's file system gives an inode another number when it is first changed.
    renumbers: bool,
    /// Extended attributes changed, or a file that cannot be opened: only a sync of everything
    /// makes that durable.
    unsynced: bool,
    /// The home's file system syncs everything when it is asked to.
    syncs_all: bool,
    /// Files and directories are not synced each, but all of them at the end.
    together: bool,
    /// What was removed under the tree's lock. The home gives its room back when it is let go of,
    /// which may take long, so that is done without the lock.
    gone: Vec<Box<dyn Held>>,
    /// Who is to blame for an error, if it is not the home as a whole.
    pub(crate) blame: Option<Blame>,
}

impl<'a> Applier<'a> {
    pub(crate) fn new(volume: &'a DirectoryVolume, pace: Pace<'a>) -> Applier<'a> {
        let (home, directories, batch) = (&*volume.home, BTreeSet::new(), Vec::new());
        Applier {
            volume,
            pace,
            home,
            directories,
            batch,
            bytes: 0,
            hands_down: HashMap::new(),
            leaving: HashMap::new(),
            relisted: BTreeSet::new(),
            renumbers: home.inode_numbers() == InodeNumbers::KeptUntilChanged,
            unsynced: false,
            syncs_all: false,
            together: false,
            gone: Vec::new(),
            blame: None,
        }
    }

    /// Applies the window and makes it durable. Returns the bytes written.
    pub(crate) fn run(&mut self, window: &Window, upto: Lsn) -> Result<u64, CleanError> {
        let contents = &window.contents;
        let listed = |contents: &Contents| contents.xattrs.contains_key(DEFAULT);
        self.relisted =
            contents.iter().filter(|(_, it)| listed(it)).map(|(node, _)| *node).collect();
        for step in &window.steps {
            self.blame = step.node().map(|node| Blame { node, what: What::Name });
            let stepped = self.step(step, window);
            self.gone.clear();
            stepped?;
        }
        self.syncs_all = self.home.has_sync_all();
        self.together = self.syncs_all && window.syncs() >= TOGETHER_MIN;
        for (node, contents) in &window.contents {
            self.blame = Some(Blame { node: *node, what: What::Contents });
            self.fill(*node, contents)?;
        }
        self.blame = None;
        for (path, at_ns) in &window.directory_times {
            self.set_directory_time(path, *at_ns)?;
        }
        self.note_came_home(upto)?;
        if self.unsynced || self.together {
            let fail = |error| CleanError::home(Act::Sync, Path::new(""), error);
            self.pace.give_way();
            self.home.sync_all().map_err(fail)?;
        }
        if !self.together {
            self.sync_directories()?;
        }
        Ok(self.bytes)
    }

    /// The home is told how far it has the log before the log gives that back, and durably with the
    /// window: a home that says less is an older copy.
    fn note_came_home(&mut self, upto: Lsn) -> Result<(), CleanError> {
        let root = PathBuf::new();
        let noted = self.home.note_came_home(upto.get());
        if noted.map_err(|error| CleanError::home(Act::Change, &root, error))? {
            self.directories.insert(root);
        }
        Ok(())
    }

    /// Changes names under the tree's lock, so that nobody looks for a file in between. A home that
    /// stands still is waited for before: whoever looks a name up must not wait along.
    fn step(&mut self, step: &Step, window: &Window) -> Result<(), CleanError> {
        if *step == Step::Barrier {
            return self.sync_directories();
        }
        if *step == Step::Nothing {
            return Ok(());
        }
        if let Step::Exchange { nodes, from, at, is_back, .. } = step {
            if *is_back && !self.has_marked(*at)? {
                // They are as they were: nobody has let them change places.
                return Ok(());
            }
            self.mark_exchange(nodes, from, *at)?;
        }
        self.home.wait_while_frozen();
        let mut names = self.volume.names_mut();
        let names = &mut *names;
        match step {
            Step::Make { node, parent, path, make, over } => {
                if let Some(old) = over.filter(|_| !is_at_home(names, *node, *parent, path)) {
                    self.remove(names, old, path, window, false)?;
                    names.left_home(self.home, old, path);
                }
                self.make(names, (*node, *parent), path, make, window)?;
                names.came_home(*node, *parent, path);
                self.tell_home(names, *node);
            }
            Step::Link { node, parent, from, to } => {
                self.link(names, *node, from, to, window)?;
                names.came_home(*node, *parent, to);
            }
            Step::Remove { node, path } | Step::RemoveDir { node, path } => {
                let is_directory = matches!(step, Step::RemoveDir { .. });
                if !self.is_brought(names, *node, path, window) {
                    self.remove(names, *node, path, window, is_directory)?;
                    names.left_home(self.home, *node, path);
                }
            }
            Step::Unmake { node, path, make } => {
                self.unmake(names, *node, path, make, window)?;
                names.left_home(self.home, *node, path);
            }
            Step::Rename { node, replaced, parent, from, to } => {
                self.rename(names, (*node, *replaced), from, to)?;
                names.left_home(self.home, *replaced, to);
                names.moved_home(self.home, *node, from, (*parent, to));
            }
            Step::Move { node, parent, from, via, to } => {
                self.move_to(names, *node, via, from, to)?;
                names.moved_home(self.home, *node, from, (*parent, to));
            }
            Step::Exchange { nodes, parents, from, to, at, is_back } => {
                let (mut nodes, when) = (*nodes, (*at, *is_back));
                if *is_back {
                    nodes.reverse();
                }
                self.exchange(names, nodes, from, to, when)?;
                names.moved_home(self.home, nodes[0], from, (parents[1], to));
                names.moved_home(self.home, nodes[1], to, (parents[0], from));
            }
            Step::Barrier | Step::Nothing => {}
        }
        Ok(())
    }

    /// Notes for the next front end which inode a node has become that the kernel knows: before the
    /// window counts as applied, because whoever repeats it finds that out alone. A front end that
    /// takes over has no such node at hand yet.
    fn tell_home(&self, names: &Names, node: NodeId) {
        let is_told = match names.entry(node) {
            Some(entry) => entry.node.is_remembered(),
            None => names.known(node).is_some(),
        };
        if is_told {
            self.volume.note_home(names, node);
        }
    }

    /// Takes hold of what the home has of a node under this name.
    fn hold(&self, names: &Names, node: NodeId, path: &Path) -> io::Result<Box<dyn Held>> {
        names.hold_at(self.home, node, path)
    }

    /// The same; none if nothing stands there.
    fn hold_if_there(
        &self,
        names: &Names,
        node: NodeId,
        path: &Path,
    ) -> io::Result<Option<Box<dyn Held>>> {
        match self.hold(names, node, path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            held => held.map(Some),
        }
    }

    /// An error unless it is one of these nodes, or may be.
    fn recognize_one_of(
        &self,
        names: &Names,
        nodes: [NodeId; 2],
        held: &dyn Held,
    ) -> io::Result<()> {
        let found = held.metadata()?;
        let mut nodes = nodes.iter().filter(|node| **node != NodeId(0));
        let is_one = nodes.any(|node| names.may_be(self.home, *node, &found));
        if is_one { Ok(()) } else { Err(other_inode()) }
    }

    /// The node has been changed.
    fn changed_inode(&self, names: &mut Names, node: NodeId, held: &dyn Held) -> io::Result<()> {
        if self.renumbers {
            names.learn(node, &held.metadata()?);
        }
        Ok(())
    }

    /// Gives a node its extended attributes.
    fn label(&mut self, held: &dyn Held, contents: &Contents) -> Result<(), CleanError> {
        if contents.xattrs.is_empty() {
            return Ok(());
        }
        self.unsynced = true;
        let path = to_path(contents.path.clone());
        let gone = contents.xattrs.iter().filter(|(_, value)| value.is_none());
        let given =
            contents.xattrs.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let given: Vec<_> = given.map(|(name, value)| (name.as_slice(), value)).collect();
        let mut one_by_one = given.iter().map(|(name, value)| held.set_xattr(name, value));
        let done = clear(held, gone.map(|(name, _)| name.as_slice()))
            .and_then(|()| one_by_one.try_for_each(|set| set));
        let done = match done {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => self.place(held, &given),
            done => done,
        };
        done.map_err(|error| CleanError::home(Act::Change, &path, error))?;
        let synced = if self.syncs_all { Ok(()) } else { sync_labels(held) };
        synced.map_err(|error| CleanError::home(Act::Sync, &path, error))
    }

    /// Whether all of them fit depends on what they come after, so the way goes over none of them.
    /// If the home takes them not even then, the node has what it had.
    fn place(&self, held: &dyn Held, given: &[(&[u8], &Vec<u8>)]) -> io::Result<()> {
        self.volume.xattrs.is_taken(self.home, given)?;
        let mut before = Vec::new();
        for (name, _) in given {
            before.extend(held.xattr(name)?.map(|value| (*name, value)));
        }
        let names = || given.iter().map(|(name, _)| *name);
        clear(held, names())?;
        let placed = place(held, given);
        if placed.is_err() {
            clear(held, names())?;
            place(held, &before)?;
        }
        placed
    }

    /// A name that is there already was given by this very step, or to what an earlier time made of
    /// the node.
    fn link(
        &mut self,
        names: &mut Names,
        node: NodeId,
        from: &[u8],
        name: &[u8],
        window: &Window,
    ) -> Result<(), CleanError> {
        let (from, to) = (to_path(from.to_vec()), self.changed(name));
        let linked = self.hold(names, node, &from).and_then(|held| {
            match self.home.link(&from, &to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let there = self.home.hold(&to)?;
                    if !is_same(&*held, &*there)? {
                        if !self.is_made_in(names, window, (node, name), &*there)? {
                            return Err(other_inode());
                        }
                        self.home.remove_file(&to)?;
                        self.home.link(&from, &to)?;
                    }
                }
                linked => linked?,
            }
            self.changed_inode(names, node, &*held)
        });
        linked.map_err(|error| CleanError::home(Act::Link, &to, error))
    }

    /// A source that is missing was moved by this very step.
    fn rename(
        &mut self,
        names: &mut Names,
        (node, replaced): (NodeId, NodeId),
        from: &[u8],
        to: &[u8],
    ) -> Result<(), CleanError> {
        let (source, target) = (self.changed(from), self.changed(to));
        let renamed = self.hold_if_there(names, node, &source).and_then(|held| {
            let Some(held) = held else { return Ok(()) };
            let there = match from != to {
                true => self.home.hold(&target),
                false => Err(io::ErrorKind::NotFound.into()),
            };
            match there {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                there => self.recognize_one_of(names, [node, replaced], &*there?)?,
            }
            unless(self.home.rename(&source, &target), io::ErrorKind::NotFound)?;
            self.changed_inode(names, node, &*held)
        });
        renamed.map_err(|error| CleanError::home(Act::Rename, &target, error))
    }

    /// If something is under the new name, it is what was to come there, because nothing else
    /// could: this step has been done, or undoes what others of the window did. A plain move is
    /// told by its source.
    fn move_to(
        &mut self,
        names: &mut Names,
        node: NodeId,
        via: &BTreeSet<Vec<u8>>,
        from: &[u8],
        to: &[u8],
    ) -> Result<(), CleanError> {
        if via.len() == 2 && from != to && !is_orphan(to) {
            return self.rename(names, (node, NodeId(0)), from, to);
        }
        if is_orphan(to) {
            self.make_orphans()?;
        }
        let target = self.changed(to);
        let fail = |error| CleanError::home(Act::Rename, &target, error);
        if self.hold_if_there(names, node, &target).map_err(fail)?.is_some() {
            return Ok(());
        }
        for from in via.iter().filter(|from| *from != to) {
            let source = self.changed(from);
            let Some(held) = self.hold_if_there(names, node, &source).map_err(fail)? else {
                continue;
            };
            match self.home.rename(&source, &target) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => {
                    let changed = result.and_then(|()| self.changed_inode(names, node, &*held));
                    return changed.map_err(fail);
                }
            }
        }
        Ok(())
    }

    /// Before two names change places, which inode stands under the first is written down, durably,
    /// in the target of a symbolic link: so a repetition can tell whether they have.
    fn mark_exchange(
        &mut self,
        nodes: &[NodeId; 2],
        from: &[u8],
        at: Lsn,
    ) -> Result<(), CleanError> {
        let marker = exchange_marker(at);
        let fail = |error| CleanError::home(Act::Rename, &marker, error);
        if self.has_marked(at)? {
            return Ok(());
        }
        let found = self.found(from)?;
        if !self.volume.names().may_be(self.home, nodes[0], &found) {
            return Err(CleanError::home(Act::Rename, &to_path(from.to_vec()), other_inode()));
        }
        self.make_orphans()?;
        self.home.make_symlink(&marker, found.inode.to_string().as_bytes()).map_err(fail)?;
        for directory in [ORPHANS_NAME, b""] {
            self.home.sync_dir(&to_path(directory.to_vec())).map_err(fail)?;
        }
        Ok(())
    }

    /// True if this window, or an earlier time that it repeats, let or was about to let the names
    /// change places.
    fn has_marked(&self, at: Lsn) -> Result<bool, CleanError> {
        let marker = exchange_marker(at);
        exists(self.home, &marker).map_err(|error| CleanError::home(Act::Rename, &marker, error))
    }

    /// If the first name stands for the inode that it stood for before, or, to change back, for
    /// another. The first of the nodes stands there then.
    fn exchange(
        &mut self,
        names: &mut Names,
        nodes: [NodeId; 2],
        from: &[u8],
        to: &[u8],
        (at, is_back): (Lsn, bool),
    ) -> Result<(), CleanError> {
        let marker = exchange_marker(at);
        let before = self.home.read_link(&marker);
        let before = before.map_err(|error| CleanError::home(Act::Rename, &marker, error))?;
        let inode = self.found(from)?.inode;
        let (one, other) = (self.changed(from), self.changed(to));
        let is_as_before = before == inode.to_string().as_bytes();
        if is_as_before == is_back {
            return Ok(());
        }
        let exchanged = self.hold(names, nodes[0], &one).and_then(|first| {
            let second = self.hold(names, nodes[1], &other)?;
            let were = [first.metadata()?, second.metadata()?];
            self.home.exchange(&one, &other)?;
            [&first, &second]
                .iter()
                .zip(were)
                .try_for_each(|(held, was)| keep_time(&***held, &was))?;
            self.changed_inode(names, nodes[0], &*first)?;
            self.changed_inode(names, nodes[1], &*second)
        });
        exchanged.map_err(|error| CleanError::home(Act::Rename, &other, error))
    }

    fn found(&self, path: &[u8]) -> Result<Metadata, CleanError> {
        let path = to_path(path.to_vec());
        self.home.metadata(&path).map_err(|error| CleanError::home(Act::Rename, &path, error))
    }

    /// The orphans' directory is made when it is first needed; detaching removes it.
    fn make_orphans(&mut self) -> Result<(), CleanError> {
        let path = self.changed(ORPHANS_NAME);
        crate::own::make(self.home).map_err(|error| CleanError::home(Act::Make, &path, error))
    }

    /// True if this process has brought the node home under the name that the window makes it
    /// under. It stays the inode that it is: whoever reads the node may have that open.
    fn is_brought(&self, names: &Names, node: NodeId, path: &[u8], window: &Window) -> bool {
        let makes_it = |contents: &Contents| contents.made && contents.path == path;
        window.contents.get(&node).is_some_and(makes_it)
            && names.is_home_at(self.home, node, &to_path(path.into()))
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
            self.pace.give_way();
            let held = self.volume.names().hold_directory(self.home, &directory);
            // A directory that a later step removed or moved has nothing left to sync here.
            unless(held.and_then(|held| held.sync_dir()), io::ErrorKind::NotFound)
                .map_err(|error| CleanError::home(Act::Sync, &directory, error))?;
        }
        Ok(())
    }

    /// Gives a node its bytes and attributes, durably unless all are synced together.
    fn fill(&mut self, node: NodeId, contents: &Contents) -> Result<(), CleanError> {
        self.pace.give_way();
        let path = to_path(contents.path.clone());
        let fail = |error| CleanError::home(Act::Open, &path, error);
        let held = self.hold(&self.volume.names(), node, &path).map_err(fail)?;
        match has_bytes(contents) {
            true => self.fill_bytes(node, &*held, contents)?,
            false => {
                self.does(What::Attributes);
                self.change(&*held, contents)?;
            }
        }
        self.does(What::Labels);
        self.label(&*held, contents)?;
        match self.renumbers {
            true => self.changed_inode(&mut self.volume.names_mut(), node, &*held).map_err(fail),
            false => Ok(()),
        }
    }

    fn fill_bytes(
        &mut self,
        node: NodeId,
        held: &dyn Held,
        contents: &Contents,
    ) -> Result<(), CleanError> {
        let path = to_path(contents.path.clone());
        let file = match self.writing_file(node) {
            Some(file) => file,
            None => held.open(true).map_err(|error| CleanError::home(Act::Open, &path, error))?,
        };
        self.fill_file(&*file, contents).map_err(|failed| match failed {
            Failed::Home(error) => CleanError::home(Act::Write, &path, error),
            Failed::Log(error) => CleanError::Read(error),
        })?;
        if !self.together {
            let blame = self.blame.take();
            file.sync_data().map_err(|error| CleanError::home(Act::Sync, &path, error))?;
            self.blame = blame;
        }
        Ok(())
    }

    /// The node's file, if it is open because the log has something for it.
    fn writing_file(&self, node: NodeId) -> Option<Arc<dyn OpenFile>> {
        let names = self.volume.names();
        let body = names.entry(node)?.node.body();
        body.writing.as_ref().map(|writing| writing.file().clone())
    }

    /// What is under way for the node whose turn it is.
    fn does(&mut self, what: What) {
        self.blame = self.blame.map(|blame| Blame { what, ..blame });
    }

    /// Attributes of a node without new bytes.
    fn change(&mut self, held: &dyn Held, contents: &Contents) -> Result<(), CleanError> {
        if contents.change == Change::default() {
            return Ok(());
        }
        // The directory above is what a file system without open file syncs anyway; a directory's
        // own attributes are its own.
        let path = self.changed(&contents.path);
        let fail = |error| CleanError::home(Act::Change, &path, error);
        held.change(&contents.change).map_err(fail)?;
        match held.metadata().map_err(fail)?.kind {
            Kind::Directory => {
                self.directories.insert(path);
                Ok(())
            }
            Kind::File if !self.together && !contents.made => {
                let synced = self.sync_file(held, |file| file.sync_data());
                synced.map_err(|error| CleanError::home(Act::Sync, &path, error))
            }
            _ => Ok(()),
        }
    }

    /// Makes a file durable by itself, unless somebody has a lease on it: then with everything.
    fn sync_file(
        &mut self,
        held: &dyn Held,
        sync: impl Fn(&dyn OpenFile) -> io::Result<()>,
    ) -> io::Result<()> {
        match held.open(false) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.syncs_all => {
                self.unsynced = true;
                Ok(())
            }
            file => sync(&*file?),
        }
    }

    /// A directory that is missing has gone in this window, or in one that this one repeats.
    fn set_directory_time(&mut self, path: &[u8], at_ns: i64) -> Result<(), CleanError> {
        let path = to_path(path.to_vec());
        let change = Change { modified_ns: Some(at_ns.into()), ..Change::default() };
        let held = self.volume.names().hold_directory(self.home, &path);
        unless(held.and_then(|held| held.change(&change)), io::ErrorKind::NotFound)
            .map_err(|error| CleanError::home(Act::Change, &path, error))?;
        self.directories.insert(path);
        Ok(())
    }
}

/// Some file systems, XFS among them, take it for a change of a directory that it is exchanged.
fn keep_time(held: &dyn Held, was: &Metadata) -> io::Result<()> {
    if was.kind != Kind::Directory || held.metadata()?.modified_ns == was.modified_ns {
        return Ok(());
    }
    held.change(&Change { modified_ns: Some(was.modified_ns), ..Change::default() })
}

/// Makes extended attributes durable by themselves. What is neither file nor directory has no sync,
/// and is left to a sync of all.
fn sync_labels(held: &dyn Held) -> io::Result<()> {
    match held.metadata()?.kind {
        Kind::Directory => held.sync_dir(),
        Kind::File => held.open(false)?.sync(),
        _ => Ok(()),
    }
}

/// True if the file itself, and not only its attributes, has to be opened.
fn has_bytes(contents: &Contents) -> bool {
    !contents.extents.is_empty() || contents.size_bytes.is_some() || !contents.reserved.is_empty()
}

/// True if both are one inode.
fn is_same(one: &dyn Held, other: &dyn Held) -> io::Result<bool> {
    let [one, other] = [one.metadata()?, other.metadata()?];
    Ok((one.device, one.inode) == (other.device, other.inode))
}

/// True if this process has brought the node home under this name.
fn is_at_home(names: &Names, node: NodeId, parent: NodeId, path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    names.entry(node).is_some_and(|entry| entry.home.has(parent, name))
}

/// Where it is written down how an exchange found the home.
pub(crate) fn exchange_marker(at: Lsn) -> PathBuf {
    to_path(ORPHANS_NAME.to_vec()).join(format!("exchange-{at}"))
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

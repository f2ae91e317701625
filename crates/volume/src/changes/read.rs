//! Reading: names, attributes, bytes.
//!
//! Promise: everything acknowledged is seen, whether the home has it or only the log.
//! Never: changes the home or the log.

use std::sync::{Arc, RwLockReadGuard};

use holdfast_io::{Kind, OpenFile, Seek, Space};

use crate::names::roster::Entry as RosterEntry;
use crate::names::{Names, Place};
use crate::node::{Body, Node};
use crate::overlay::allocated::Allocated;
use crate::overlay::extents::Source;
use crate::own::ORPHANS_NAME;
use crate::record::AtHome;
use crate::volume::DirectoryVolume;
use crate::words;
use holdfast_io::tree::{Attributes, Errno, Listed, NodeId, ROOT};

/// A file on the home, if the home has it, and what the log says of it.
type FileAndBody<'a> = (Option<Arc<dyn OpenFile>>, RwLockReadGuard<'a, Body>);

impl DirectoryVolume {
    /// The node under a name. It is remembered until it is forgotten as often as it was found.
    pub(crate) fn find(&self, parent: NodeId, name: &[u8]) -> Result<Attributes, Errno> {
        if let Some(attributes) = self.find_at_hand(parent, name)? {
            return Ok(attributes);
        }
        self.node(parent)?;
        self.check_length(name)?;
        let mut names = self.names_mut();
        names.load(&*self.home, parent)?;
        let node = names.open_child(&*self.home, parent, name)?;
        self.remember(&names, &node, parent, name)?;
        Ok(node.body().attributes)
    }

    /// The common case: the directory is read, and the name is missing or its node is here.
    fn find_at_hand(&self, parent: NodeId, name: &[u8]) -> Result<Option<Attributes>, Errno> {
        let names = self.names();
        if !names.is_loaded(parent) {
            return Ok(None);
        }
        let Some(child) = names.child(parent, name) else {
            self.check_length(name)?;
            return Err(Errno::NOENT);
        };
        let Some(entry) = names.entry(child.node) else { return Ok(None) };
        if !entry.node.is_remembered() || !entry.places.has(parent, name) {
            return Ok(None);
        }
        self.tell(&names, &entry.node, Place { parent, name: name.into() })?;
        let attributes = entry.node.body().attributes;
        Ok(Some(attributes))
    }

    /// Notes that a front end is about to be told of the node by this name, and counts it. One note
    /// at a time: the roster that a full one is replaced by must count what stood in that. What is
    /// noted of its inode stands in that one too, though nobody remembers the node yet.
    fn tell(&self, names: &Names, node: &Node, place: Place) -> Result<(), Errno> {
        let _turn = self.counting();
        self.note_beside(names, &RosterEntry::Told(node.id, place), || {
            let at_home = names.noted_home(node.id);
            let is_new = !node.is_remembered() && at_home != AtHome::default();
            is_new.then_some(RosterEntry::Home(node.id, at_home))
        })?;
        node.remember();
        Ok(())
    }

    /// A front end is told of the node under this name. Anew, it is noted with all its names: by
    /// which of them the node is reached later is not known. The others come second, when a roster
    /// that is written anew has the node.
    pub(crate) fn remember(
        &self,
        names: &Names,
        node: &Node,
        parent: NodeId,
        name: &[u8],
    ) -> Result<(), Errno> {
        let place = Place { parent, name: name.into() };
        if node.is_remembered() {
            return self.tell(names, node, place);
        }
        // First: whoever finds a node that is told of, and no inode, takes it for one that has
        // never come home, and may take over between any two notes.
        self.note_home(names, node.id);
        self.tell(names, node, place.clone())?;
        let places = names.entry(node.id).into_iter().flat_map(|entry| entry.places.iter());
        let mut others = places.filter(|other| **other != place);
        others.try_for_each(|other| self.note(names, &RosterEntry::Bind(node.id, other.clone())))
    }

    /// Notes which inode of the home a node is that a front end was told of. Without room for that
    /// the next front end has to believe what it finds.
    pub(crate) fn note_home(&self, names: &Names, node: NodeId) {
        let at_home = names.at_home(node);
        let is_known = at_home != AtHome::default();
        if is_known && self.note(names, &RosterEntry::Home(node, at_home)).is_err() {
            names.omit_inodes();
            let _ = self.log.set_word(words::INODES_TOLD, 0);
        }
    }

    pub(crate) fn attributes_of(&self, id: NodeId) -> Result<Attributes, Errno> {
        let node = self.node(id)?;
        let attributes = node.body().attributes;
        Ok(attributes)
    }

    pub(crate) fn target_of(&self, id: NodeId) -> Result<Vec<u8>, Errno> {
        let node = self.node(id)?;
        let body = node.body();
        if body.attributes.kind != Kind::Symlink {
            return Err(Errno::INVAL);
        }
        Ok(body.target.clone())
    }

    /// The home's bytes first, unless the log has them all; then the log's over them.
    pub(crate) fn read_bytes(
        &self,
        id: NodeId,
        into: &mut [u8],
        offset: u64,
    ) -> Result<usize, Errno> {
        let node = self.node(id)?;
        let (file, body) = self.file_and_body(&node)?;
        let left = body.attributes.size_bytes.saturating_sub(offset);
        let length = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let into = &mut into[..length];
        if !body.extents.covers(offset, length as u64) {
            read_home(file.as_deref(), body.cuts.valid_bytes(), into, offset)?;
        }
        self.read_overlay(&body, into, offset)?;
        Ok(length)
    }

    /// Puts what only the log has over what the home has.
    pub(crate) fn read_overlay(
        &self,
        body: &Body,
        into: &mut [u8],
        offset: u64,
    ) -> Result<(), Errno> {
        for piece in body.extents.within(offset, into.len() as u64) {
            let start = (piece.offset - offset) as usize;
            let part = &mut into[start..start + piece.bytes as usize];
            match piece.source {
                Source::Log => self.log.copy_bytes(piece.at, part).map_err(|_| Errno::IO)?,
                Source::Zeros | Source::Hole => part.fill(0),
            }
        }
        Ok(())
    }

    /// The home's file, as [`Self::home_file`], and the body that goes with it. The file is looked
    /// for first, because the tree's lock comes before a node's.
    fn file_and_body<'a>(&self, node: &'a Arc<Node>) -> Result<FileAndBody<'a>, Errno> {
        let file = self.home_file(node)?;
        let body = node.body();
        if file.is_some() || body.cuts.valid_bytes() == 0 {
            return Ok((file, body));
        }
        // The cleaner may have brought the file home between the two looks.
        drop(body);
        let file = self.home_file(node)?;
        Ok((file, node.body()))
    }

    /// The home's file of a node, if the home has one. Kept open for the next time.
    pub(crate) fn home_file(&self, node: &Arc<Node>) -> Result<Option<Arc<dyn OpenFile>>, Errno> {
        let mut kept = node.file();
        if let Some(file) = &*kept {
            return Ok(Some(file.clone()));
        }
        let names = self.names();
        let Some(held) = names.hold(&*self.home, node.id)? else { return Ok(None) };
        let file = held.open(false)?;
        *kept = Some(file.clone());
        drop((kept, names));
        self.kept_files.keep(node);
        Ok(Some(file))
    }

    pub(crate) fn list_names(
        &self,
        directory: NodeId,
        cookie: u64,
        sink: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<(), Errno> {
        self.node(directory)?;
        if !self.names().is_loaded(directory) {
            self.names_mut().load(&*self.home, directory)?;
        }
        let names = self.names();
        let entry = names.entry(directory).ok_or(Errno::STALE)?;
        let children = entry.children.as_ref().ok_or(Errno::NOTDIR)?;
        for (cookie, child) in children.behind(cookie) {
            let (name, kind, inode) = (&*child.name, child.kind, child.node.0);
            if !sink(Listed { name, inode, kind, cookie }) {
                break;
            }
        }
        Ok(())
    }

    /// Refuses names that no program may use, or that are too long for the home.
    pub(crate) fn check_name(&self, parent: NodeId, name: &[u8]) -> Result<(), Errno> {
        if name.is_empty() || name == b"." || name == b".." {
            return Err(Errno::INVAL);
        }
        self.check_length(name)?;
        if parent == ROOT && name == ORPHANS_NAME {
            return Err(Errno::PERM);
        }
        Ok(())
    }

    fn check_length(&self, name: &[u8]) -> Result<(), Errno> {
        let fits = name.len() <= self.name_bytes_max;
        if fits { Ok(()) } else { Err(Errno::NAMETOOLONG) }
    }

    pub(crate) fn space_left(&self) -> Result<Space, Errno> {
        let waiting = self.space.waiting();
        let space = self.home.space()?;
        Ok(Space {
            free_bytes: space.free_bytes.saturating_sub(waiting.bytes),
            available_bytes: space.available_bytes.saturating_sub(waiting.bytes),
            free_inodes: space.free_inodes.saturating_sub(waiting.inodes),
            ..space
        })
    }

    /// Makes sure that it is known which blocks of a file have room, before one gets or loses some.
    pub(crate) fn know_allocated(&self, node: &Arc<Node>) -> Result<(), Errno> {
        let is_known = |body: &Body| body.allocated.is_some() || body.attributes.kind != Kind::File;
        if is_known(&node.body()) {
            return Ok(());
        }
        let allocated = match self.home_file(node)? {
            Some(file) => Allocated::of(&*file, &file.metadata()?, self.space.unit)?,
            None => Allocated::none(self.space.unit),
        };
        // Whoever else has looked meanwhile may have changed the file since.
        node.body_mut().allocated.get_or_insert(allocated);
        Ok(())
    }

    /// Where the next data or hole of a file begins.
    pub(crate) fn seek_in(&self, id: NodeId, offset: u64, what: Seek) -> Result<u64, Errno> {
        let node = self.node(id)?;
        self.know_allocated(&node)?;
        let body = node.body();
        let size_bytes = body.attributes.size_bytes;
        let allocated = body.allocated.as_ref().ok_or(Errno::INVAL)?;
        let found = allocated.seek(offset, what).filter(|_| offset < size_bytes);
        match what {
            Seek::Data => found.filter(|found| *found < size_bytes).ok_or(Errno::NXIO),
            Seek::Hole => found.map(|found| found.min(size_bytes)).ok_or(Errno::NXIO),
        }
    }
}

/// The home's part of a read: what it has below `valid_bytes`, and zeros behind that.
pub(crate) fn read_home(
    file: Option<&dyn OpenFile>,
    valid_bytes: u64,
    into: &mut [u8],
    offset: u64,
) -> Result<(), Errno> {
    let counting = valid_bytes.saturating_sub(offset);
    let counting = into.len().min(usize::try_from(counting).unwrap_or(usize::MAX));
    let got = match file {
        Some(file) => file.read_full_at(&mut into[..counting], offset)?,
        None => 0,
    };
    into[got..].fill(0);
    Ok(())
}

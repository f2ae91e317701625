//! Giving memory back what the log has and the home has not, after the process died.
//!
//! The home may already have a part of the first window (see [`crate::clean`]), so every name is
//! looked up there before it is believed to be missing or present.
//!
//! Promise: after a replay every node, name, byte and attribute is as it was acknowledged.
//! Never: changes the home or the log.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_io::{Files, Kind};
use holdfast_log::{Kind as FrameKind, Log, Lsn};

use crate::clean;
use crate::extents::{Piece, Source};
use crate::names::{Names, ORPHANS, Place, read_node};
use crate::node::Node;
use crate::record::{Op, Record};
use crate::rename::made;
use crate::tree::{Errno, NodeId, ROOT};
use crate::volume::{DirectoryVolume, VolumeError};

/// Calls `each` for every record that is in the ring.
fn for_each(
    log: &Log,
    mut each: impl FnMut(Lsn, &Record<'_>, Lsn) -> Result<(), VolumeError>,
) -> Result<(), VolumeError> {
    let marks = log.marks();
    for frame in &log.frames(marks.released, marks.tail) {
        if frame.header.kind != FrameKind::Data {
            continue;
        }
        let lsn = frame.header.lsn;
        for (record, data) in clean::decode(lsn, frame.payload, frame.payload_lsn)? {
            each(lsn, &record, data)?;
        }
    }
    Ok(())
}

/// A node number above all that the log names.
pub(crate) fn next_free(log: &Log) -> Result<u64, VolumeError> {
    let mut next = 0;
    for_each(log, |_, record, _| {
        next = next.max(record.node.0 + 1);
        Ok(())
    })?;
    Ok(next)
}

/// Replays every record in the ring. Returns how many there were.
pub(crate) fn replay(volume: &DirectoryVolume) -> Result<u64, VolumeError> {
    let mut mentioned = HashMap::new();
    for_each(&volume.log, |_, record, _| {
        if !matches!(record.op, Op::Make { .. }) {
            mentioned.entry(record.path.to_vec()).or_insert(record.node);
        }
        if let Op::Rename { to, replaced } = record.op
            && replaced.0 != 0
        {
            mentioned.entry(to.to_vec()).or_insert(replaced);
        }
        let named = match record.op {
            Op::Rename { to, .. } | Op::Link { to } => to,
            _ => record.path,
        };
        if let Some(slash) = named.iter().rposition(|byte| *byte == b'/') {
            mentioned.entry(named[..slash].to_vec()).or_insert(record.parent);
        }
        Ok(())
    })?;
    let mut names = volume.names_mut();
    names.mention(mentioned);
    let mut replay = Replay { home: &*volume.home, names: &mut names, touched: HashMap::new() };
    let mut records = 0;
    for_each(&volume.log, |lsn, record, data| {
        records += 1;
        replay.record(lsn, record, data).map_err(VolumeError::Home)
    })?;
    names.mention(HashMap::new());
    Ok(records)
}

struct Replay<'a> {
    home: &'a dyn Files,
    names: &'a mut Names,
    /// Names that records so far changed, and whether they left one there. What the home has
    /// under such a name says nothing about later records.
    touched: HashMap<Place, bool>,
}

impl Replay<'_> {
    fn record(&mut self, lsn: Lsn, record: &Record<'_>, data: Lsn) -> Result<(), Errno> {
        match record.op {
            Op::Make { .. } => self.make(lsn, record),
            Op::Link { to } => self.link(lsn, record, to),
            Op::Remove { survivor, .. } => self.remove(record, survivor),
            Op::RemoveDir => self.remove(record, b""),
            Op::Rename { to, .. } => self.rename(lsn, record, to),
            _ => self.fill(lsn, record, data),
        }
    }

    /// The directory and the name of a path, with every directory on the way read.
    fn place(&mut self, path: &[u8]) -> Result<Place, Errno> {
        let mut directory = ROOT;
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            let orphans = directory == ROOT && part == crate::names::ORPHANS_NAME;
            self.names.load(self.home, directory)?;
            if parts.peek().is_none() {
                return Ok(Place { parent: directory, name: part.into() });
            }
            directory = match orphans {
                true => ORPHANS,
                false => self.directory_in(directory, part)?,
            };
        }
        Err(Errno::INVAL)
    }

    fn directory_in(&mut self, directory: NodeId, name: &[u8]) -> Result<NodeId, Errno> {
        let child = self.names.child(directory, name).ok_or(Errno::NOENT)?;
        let (id, kind) = (child.node, child.kind);
        let place = Place { parent: directory, name: name.into() };
        self.node(id, kind, &place)?;
        Ok(id)
    }

    /// True if the home has the name, and no record so far is about it.
    fn home_has(&self, place: &Place) -> bool {
        let path = self.names.home_path_of(place);
        let path = path.filter(|_| !self.touched.contains_key(place));
        path.is_some_and(|path| self.home.metadata(&path).is_ok())
    }

    /// True if the name is among those that the node's link count counts.
    fn is_counted(&self, node: &Node, place: &Place) -> bool {
        let from_log = node.body().home_valid_bytes == 0;
        let at_home = || !from_log && self.home_has(place);
        self.touched.get(place).copied().unwrap_or_else(at_home)
    }

    /// The name goes from its node.
    fn leave(&mut self, node: &Node, place: &Place) {
        if self.is_counted(node, place) {
            let mut body = node.body_mut();
            body.attributes.links = body.attributes.links.saturating_sub(1);
        }
        self.names.unbind(place.parent, &place.name);
        self.touched.insert(place.clone(), false);
    }

    /// The node that the log means by a number and a place.
    fn node(&mut self, id: NodeId, kind: Kind, place: &Place) -> Result<Arc<Node>, Errno> {
        if let Some(entry) = self.names.entry(id) {
            return Ok(entry.node.clone());
        }
        let known = self.names.known_places(id).cloned();
        let candidates = std::iter::once(place).chain(known.iter().flatten());
        let home = candidates.filter(|place| self.home_has(place)).next().cloned();
        self.enter(id, kind, place, home)
    }

    /// Adds a node under a place, as the home has it.
    fn enter(
        &mut self,
        id: NodeId,
        kind: Kind,
        place: &Place,
        home: Option<Place>,
    ) -> Result<Arc<Node>, Errno> {
        let known = self.names.known_places(id).cloned();
        let node = match home.as_ref().and_then(|place| self.names.home_path_of(place)) {
            Some(path) => read_node(self.home, id, &path)?,
            // Made and removed again in one window: what is said of it no longer matters.
            None => Node::from_log(nothing(id, kind), Vec::new()),
        };
        if home.as_ref().is_some_and(|home| home.parent == ORPHANS) {
            node.body_mut().attributes.links = 0;
        }
        if known.is_some() {
            node.inherit();
        }
        let kind = node.body().attributes.kind;
        let mut places = vec![place.clone()];
        places.extend(known.into_iter().flatten().filter(|other| other != place));
        let node = self.names.adopt(Arc::new(node), kind, places, home);
        self.names.bind(place.parent, &place.name, kind, id);
        Ok(node)
    }

    fn make(&mut self, lsn: Lsn, record: &Record<'_>) -> Result<(), Errno> {
        let attributes = made(record.node, &record.op, record.at_ns).ok_or(Errno::INVAL)?;
        let Op::Make { kind, target, .. } = record.op else { return Err(Errno::INVAL) };
        let place = self.place(record.path)?;
        let home = self.home_has(&place).then(|| place.clone());
        self.touched.insert(place.clone(), true);
        let node = Node::from_log(attributes, target.to_vec());
        {
            let mut body = node.body_mut();
            body.last = lsn;
            body.cut_at = lsn;
        }
        let inherited = self.names.known_places(record.node).is_some();
        if inherited {
            node.inherit();
        }
        self.names.put_made(Arc::new(node), kind, place.parent, &place.name);
        if let Some(entry) = self.names.entry_mut(record.node) {
            entry.home = home;
        }
        self.names.forget_known(record.node);
        Ok(())
    }

    fn link(&mut self, lsn: Lsn, record: &Record<'_>, to: &[u8]) -> Result<(), Errno> {
        let from = self.place(record.path)?;
        let node = self.node(record.node, Kind::File, &from)?;
        let to = self.place(to)?;
        let counted = self.is_counted(&node, &to);
        let kind = node.body().attributes.kind;
        {
            let mut body = node.body_mut();
            body.attributes.links += u32::from(!counted);
            body.last = lsn;
        }
        self.names.bind(to.parent, &to.name, kind, record.node);
        self.touched.insert(to, true);
        Ok(())
    }

    fn remove(&mut self, record: &Record<'_>, survivor: &[u8]) -> Result<(), Errno> {
        let place = match self.place(record.path) {
            // The directory above has gone from the home in the same window.
            Err(Errno::NOENT) => return Ok(()),
            place => place?,
        };
        if !survivor.is_empty() {
            let other = self.place(survivor)?;
            let node = self.node(record.node, Kind::File, &other)?;
            self.leave(&node, &place);
        } else if self.names.entry(record.node).is_some() || self.home_has(&place) {
            let node = self.node(record.node, Kind::File, &place)?;
            self.leave(&node, &place);
        } else {
            self.names.unbind(place.parent, &place.name);
            self.touched.insert(place, false);
        }
        Ok(())
    }

    /// True if the home has done this rename: an orphan's name is new, so it is told by the target;
    /// any other by the name it left.
    fn is_moved(&self, from: &Place, to: &Place) -> bool {
        match to.parent == ORPHANS {
            true => self.home_has(to),
            false => !self.home_has(from),
        }
    }

    fn rename(&mut self, lsn: Lsn, record: &Record<'_>, to: &[u8]) -> Result<(), Errno> {
        let from = self.place(record.path)?;
        let to = self.place(to)?;
        if self.names.entry(record.node).is_none() && self.is_moved(&from, &to) {
            self.enter(record.node, Kind::File, &to, Some(to.clone()))?;
            self.names.unbind(from.parent, &from.name);
            self.touched.insert(from, false);
            self.touched.insert(to, true);
            return Ok(());
        }
        let node = self.node(record.node, Kind::File, &from)?;
        let kind = node.body().attributes.kind;
        if let Some(child) = self.names.child(to.parent, &to.name).cloned()
            && child.node != record.node
        {
            let replaced = self.node(child.node, child.kind, &to)?;
            self.leave(&replaced, &to);
        }
        self.names.unbind(from.parent, &from.name);
        self.names.bind(to.parent, &to.name, kind, record.node);
        self.touched.insert(from, false);
        self.touched.insert(to.clone(), true);
        let mut body = node.body_mut();
        if to.parent == ORPHANS {
            body.attributes.links = 0;
        }
        body.last = lsn;
        Ok(())
    }

    fn fill(&mut self, lsn: Lsn, record: &Record<'_>, data: Lsn) -> Result<(), Errno> {
        let node = match self.names.entry(record.node) {
            Some(entry) => entry.node.clone(),
            None if record.path.is_empty() => return Ok(()),
            None => {
                let place = self.place(record.path)?;
                self.node(record.node, Kind::File, &place)?
            }
        };
        let mut body = node.body_mut();
        match record.op {
            Op::Write { offset, bytes } => {
                body.extents.insert(Piece { offset, bytes, at: data, source: Source::Log });
                body.attributes.size_bytes = body.attributes.size_bytes.max(offset + bytes);
                body.touch(record.at_ns, lsn);
            }
            Op::Zero { offset, bytes, hole } => {
                let source = if hole { Source::Hole } else { Source::Zeros };
                body.extents.insert(Piece { offset, bytes, at: lsn, source });
                let end = if hole { 0 } else { offset + bytes };
                body.attributes.size_bytes = body.attributes.size_bytes.max(end);
                body.touch(record.at_ns, lsn);
            }
            Op::SetSize { size_bytes } => {
                body.resize(size_bytes, lsn);
                body.touch(record.at_ns, lsn);
            }
            Op::Change { change } => body.change(&change, record.at_ns, lsn),
            _ => body.touch(record.at_ns, lsn),
        }
        Ok(())
    }
}

/// Attributes of a node that no longer matters.
fn nothing(id: NodeId, kind: Kind) -> crate::tree::Attributes {
    crate::tree::Attributes {
        node: id,
        kind,
        mode: 0,
        uid: 0,
        gid: 0,
        size_bytes: 0,
        allocated_bytes: 0,
        links: 0,
        rdev: 0,
        accessed_ns: 0,
        modified_ns: 0,
        changed_ns: 0,
    }
}

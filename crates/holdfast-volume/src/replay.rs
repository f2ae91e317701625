//! Giving memory back what the log has and the home has not, after the process died.
//!
//! The cleaner has finished the window that it was at (see [`crate::clean`]), so the home is just
//! as it was when the first record in the ring was acknowledged, and the records can be followed
//! one by one.
//!
//! Promise: after a replay every node, name, byte and attribute is as it was acknowledged.
//! Never: changes the home or the log.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_io::{Files, Kind};
use holdfast_log::{CommitLog, Frame, Lsn};

use crate::clean::{self, CleanError};
use crate::extents::{Piece, Source};
use crate::make::made;
use crate::names::{Names, ORPHANS, Place, read_node};
use crate::node::Node;
use crate::record::{Op, Record};
use crate::tree::{Errno, NodeId, ROOT};
use crate::volume::{DirectoryVolume, VolumeError};

/// Calls `each` for every record that is in the ring.
fn for_each(
    log: &dyn CommitLog,
    mut each: impl FnMut(Lsn, &Record<'_>, Lsn) -> Result<(), VolumeError>,
) -> Result<(), VolumeError> {
    let mut frame_of = |frame: &Frame<'_>| {
        let lsn = frame.header.lsn;
        let mut records = clean::decode(lsn, frame.payload, frame.payload_lsn)?.into_iter();
        records.try_for_each(|(record, data)| each(lsn, &record, data))
    };
    let marks = log.marks();
    let mut outcome = Ok(());
    let read = log.read(marks.released, marks.tail, &mut |frame| {
        outcome = frame_of(frame);
        outcome.is_ok()
    });
    read.map_err(CleanError::Read)?;
    outcome
}

/// A node number above all that the log names.
pub(crate) fn next_free(log: &dyn CommitLog) -> Result<u64, VolumeError> {
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
    for_each(&*volume.log, |_, record, _| {
        mention(&mut mentioned, record);
        Ok(())
    })?;
    let mut names = volume.names_mut();
    let at_home = mentioned.into_iter().filter_map(|(path, node)| Some((path, node?)));
    names.mention(at_home.collect());
    let mut replay = Replay { home: &*volume.home, names: &mut names };
    let mut records = 0;
    for_each(&*volume.log, |lsn, record, data| {
        records += 1;
        replay.record(lsn, record, data).map_err(VolumeError::Home)
    })?;
    names.mention(HashMap::new());
    names.note_all_at_home(&*volume.home);
    Ok(records)
}

/// Which node a path of the home stands for: the first record about the path tells. One that makes
/// the name tells that the home has none.
fn mention(mentioned: &mut HashMap<Vec<u8>, Option<NodeId>>, record: &Record<'_>) {
    let mut tell = |path: &[u8], node: Option<NodeId>| {
        mentioned.entry(path.to_vec()).or_insert(node);
    };
    let mut named = record.path;
    match record.op {
        Op::Make { .. } => tell(record.path, None),
        Op::Rename { to, replaced } => {
            tell(record.path, Some(record.node));
            tell(to, (replaced.0 != 0).then_some(replaced));
            named = to;
        }
        Op::Link { to } => {
            tell(record.path, Some(record.node));
            tell(to, None);
            named = to;
        }
        _ => tell(record.path, Some(record.node)),
    }
    if let Some(slash) = named.iter().rposition(|byte| *byte == b'/') {
        tell(&named[..slash], Some(record.parent));
    }
}

/// A replay under way.
struct Replay<'a> {
    home: &'a dyn Files,
    names: &'a mut Names,
}

impl Replay<'_> {
    /// Does in memory what the record did when it was acknowledged.
    fn record(&mut self, lsn: Lsn, record: &Record<'_>, data: Lsn) -> Result<(), Errno> {
        match record.op {
            Op::Make { .. } => self.make(lsn, record),
            Op::Link { to } => self.link(lsn, record, to),
            Op::Remove { .. } | Op::RemoveDir => self.remove(lsn, record),
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

    /// The directory of that name, with a node behind it.
    fn directory_in(&mut self, directory: NodeId, name: &[u8]) -> Result<NodeId, Errno> {
        let id = self.names.child(directory, name).ok_or(Errno::NOENT)?.node;
        self.node(id, &Place { parent: directory, name: name.into() })?;
        Ok(id)
    }

    /// The node that the log means by a number and a place. One that no record made is where the
    /// home has it.
    fn node(&mut self, id: NodeId, place: &Place) -> Result<Arc<Node>, Errno> {
        if let Some(entry) = self.names.entry(id) {
            let node = entry.node.clone();
            self.names.note_at_home(self.home, id, place);
            return Ok(node);
        }
        let path = self.names.home_path_of(place).ok_or(Errno::STALE)?;
        let (node, inode) = read_node(self.home, id, &path)?;
        if place.parent == ORPHANS {
            node.body_mut().attributes.links = 0;
        }
        let known = self.names.known(id).cloned();
        if let Some(known) = &known {
            node.inherit(known.count);
        }
        let kind = node.body().attributes.kind;
        let mut places = vec![place.clone()];
        let others = known.into_iter().flat_map(|known| known.places);
        places.extend(others.filter(|other| other != place));
        let node = self.names.adopt(Arc::new(node), kind, places, Some(place.clone()));
        self.names.note_inode(inode, id);
        self.names.bind(place.parent, &place.name, kind, id);
        Ok(node)
    }

    /// The name goes from its node.
    fn leave(&mut self, node: &Node, place: &Place, at_ns: i64, lsn: Lsn) {
        let is_directory = {
            let mut body = node.body_mut();
            let is_directory = body.attributes.kind == Kind::Directory;
            let links = body.attributes.links.saturating_sub(1);
            body.attributes.links = if is_directory { 0 } else { links };
            body.attributes.changed_ns = at_ns;
            body.last = lsn;
            is_directory
        };
        self.names.unbind(place.parent, &place.name);
        self.names.touch_directory(place.parent, at_ns, -i64::from(is_directory));
    }

    fn make(&mut self, lsn: Lsn, record: &Record<'_>) -> Result<(), Errno> {
        let attributes = made(record.node, &record.op, record.at_ns).ok_or(Errno::INVAL)?;
        let Op::Make { kind, target, .. } = record.op else { return Err(Errno::INVAL) };
        let place = self.place(record.path)?;
        let node = Node::from_log(attributes, target.to_vec(), lsn);
        if let Some(known) = self.names.known(record.node) {
            node.inherit(known.count);
        }
        self.names.put_made(Arc::new(node), kind, place.parent, &place.name);
        let subdirectories = i64::from(kind == Kind::Directory);
        self.names.touch_directory(place.parent, record.at_ns, subdirectories);
        self.names.forget_known(record.node);
        Ok(())
    }

    fn link(&mut self, lsn: Lsn, record: &Record<'_>, to: &[u8]) -> Result<(), Errno> {
        let from = self.place(record.path)?;
        let node = self.node(record.node, &from)?;
        let to = self.place(to)?;
        let kind = {
            let mut body = node.body_mut();
            body.attributes.links += 1;
            body.attributes.changed_ns = record.at_ns;
            body.last = lsn;
            body.attributes.kind
        };
        self.names.bind(to.parent, &to.name, kind, record.node);
        self.names.touch_directory(to.parent, record.at_ns, 0);
        Ok(())
    }

    fn remove(&mut self, lsn: Lsn, record: &Record<'_>) -> Result<(), Errno> {
        let place = self.place(record.path)?;
        let node = self.node(record.node, &place)?;
        self.leave(&node, &place, record.at_ns, lsn);
        Ok(())
    }

    fn rename(&mut self, lsn: Lsn, record: &Record<'_>, to: &[u8]) -> Result<(), Errno> {
        let from = self.place(record.path)?;
        let to = self.place(to)?;
        let node = self.node(record.node, &from)?;
        if let Some(child) = self.names.child(to.parent, &to.name).cloned()
            && child.node != record.node
        {
            let replaced = self.node(child.node, &to)?;
            self.leave(&replaced, &to, record.at_ns, lsn);
        }
        let kind = {
            let mut body = node.body_mut();
            if to.parent == ORPHANS {
                body.attributes.links = 0;
            }
            body.attributes.changed_ns = record.at_ns;
            body.last = lsn;
            body.attributes.kind
        };
        self.names.unbind(from.parent, &from.name);
        self.names.bind(to.parent, &to.name, kind, record.node);
        let moved = i64::from(kind == Kind::Directory);
        self.names.touch_directory(from.parent, record.at_ns, -moved);
        self.names.touch_directory(to.parent, record.at_ns, moved);
        Ok(())
    }

    fn fill(&mut self, lsn: Lsn, record: &Record<'_>, data: Lsn) -> Result<(), Errno> {
        let node = match self.names.entry(record.node) {
            Some(entry) => entry.node.clone(),
            None => {
                let place = self.place(record.path)?;
                self.node(record.node, &place)?
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

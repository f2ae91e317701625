//! Giving memory back what the log has and the home has not, after the process died.
//!
//! The cleaner has finished the window that it was at (see [`crate::clean`]), so the home is just
//! as it was when the first record in the ring was acknowledged, and the records can be followed
//! one by one.
//!
//! Promise: after a replay every node, name, byte and attribute is as it was acknowledged.
//! Never: changes the home or the log.

mod home_paths;

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use holdfast_io::{Change, Files, Held, Kind, OpenFile};
use holdfast_log::{CommitLog, Frame, Lsn};

use crate::changes::make::made;
use crate::changes::rename::exchanged;
use crate::clean::error::{Act, CleanError};
use crate::clean::frames::decode;
use crate::error::VolumeError;
use crate::home::space::{Cost, SpaceGate};
use crate::names::paths::to_path;
use crate::names::{Names, ORPHANS, Place, read_node};
use crate::node::Node;
use crate::overlay::allocated::Allocated;
use crate::overlay::extents::{Piece, Source};
use crate::record::{AtHome, Op, Record};
use crate::replay::home_paths::HomePaths;
use crate::volume::DirectoryVolume;
use holdfast_io::tree::{Errno, NodeId, ROOT};
use holdfast_io::tree::{is_other_inode, other_inode};

/// How often a file that somebody has a lease on is looked at again, and how many times: longer
/// than the kernel lets a lease be in the way, if nobody has told it otherwise.
const LEASE_LOOK: Duration = Duration::from_millis(50);
const LEASE_LOOKS: u32 = 1_000;

/// Calls `each` for every record that is in the ring.
pub(crate) fn for_each(
    log: &dyn CommitLog,
    mut each: impl FnMut(Lsn, &Record<'_>, Lsn) -> Result<(), VolumeError>,
) -> Result<(), VolumeError> {
    let mut frame_of = |frame: &Frame<'_>| {
        let lsn = frame.header.lsn;
        let mut records = decode(lsn, frame.payload, frame.payload_lsn)?.into_iter();
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

/// A node number above all that the log names, and which inodes of the home it says that nodes are.
pub(crate) fn look_ahead(
    log: &dyn CommitLog,
) -> Result<(u64, HashMap<NodeId, AtHome>), VolumeError> {
    let (mut next, mut told) = (0, HashMap::new());
    for_each(log, |_, record, _| {
        let other = match record.op {
            Op::Rename { replaced: other, .. } | Op::Exchange { other, .. } => other,
            _ => record.node,
        };
        next = next.max(record.node.0 + 1).max(record.parent.0 + 1).max(other.0 + 1);
        if record.at_home != AtHome::default() {
            told.insert(record.node, record.at_home);
        }
        Ok(())
    })?;
    Ok((next, told))
}

/// Replays every record in the ring. Returns how many there were.
pub(crate) fn replay(volume: &DirectoryVolume) -> Result<u64, VolumeError> {
    let mut at_home = HomePaths::new();
    // What is aside is in no window, so it is not in memory either.
    let mut passed = volume.passed_over();
    let mut goes = Vec::new();
    for_each(&*volume.log, |lsn, record, _| {
        goes.push(!passed.passes_over(lsn, record));
        if goes.last() == Some(&true) {
            at_home.follow(record);
        }
        Ok(())
    })?;
    let mut goes = goes.into_iter();
    let mut names = volume.names_mut();
    names.yield_lost(passed.lost());
    names.mention(at_home.into_nodes());
    let (home, space, nameless) = (&*volume.home, &volume.space, HashSet::new());
    let mut replay = Replay { home, space, names: &mut names, nameless };
    let mut records = 0;
    for_each(&*volume.log, |lsn, record, data| {
        if goes.next() == Some(false) {
            return Ok(());
        }
        records += 1;
        match replay.record(lsn, record, data) {
            // Somebody else took it from the home. The cleaner says so, by name.
            Err(Errno::NOENT) => Ok(()),
            // What is below another directory than ours is not in memory then, and must not be
            // taken for all there is when the right one is back.
            Err(Errno::UCLEAN) => {
                let path = to_path(record.path.to_vec());
                Err(CleanError::home(Act::Open, &path, other_inode()).into())
            }
            done => done.map_err(VolumeError::Home),
        }
    })?;
    names.mention(HashMap::new());
    names.end_told();
    names.revive_parents(&*volume.home);
    names.note_all_at_home(&*volume.home);
    Ok(records)
}

/// A replay under way.
struct Replay<'a> {
    home: &'a dyn Files,
    space: &'a SpaceGate,
    names: &'a mut Names,
    /// Nodes whose links do not count the name that they have among the orphans. One that was read
    /// by another name has it counted.
    nameless: HashSet<NodeId>,
}

impl Replay<'_> {
    /// Does in memory what the record did when it was acknowledged.
    fn record(&mut self, lsn: Lsn, record: &Record<'_>, data: Lsn) -> Result<(), Errno> {
        match record.op {
            Op::Make { .. } => self.make(lsn, record),
            Op::Link { to } => self.link(lsn, record, to),
            Op::Remove { .. } | Op::RemoveDir => self.remove(lsn, record),
            Op::Rename { to, .. } => self.rename(lsn, record, to),
            Op::Exchange { to, other, .. } => self.exchange(lsn, record, to, other),
            _ => self.fill(lsn, record, data),
        }
    }

    /// The directory and the name of a path, with every directory on the way read.
    fn place(&mut self, path: &[u8]) -> Result<Place, Errno> {
        let mut directory = ROOT;
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            let orphans = directory == ROOT && part == crate::own::ORPHANS_NAME;
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
        let (node, inode) = read_node(&*self.names.hold_place(self.home, place)?, id)?;
        if place.parent == ORPHANS {
            node.body_mut().attributes.links -= 1;
            self.nameless.insert(id);
        }
        let known = self.names.known(id).cloned();
        if let Some(known) = &known {
            node.inherit(known.count);
        }
        let kind = node.body().attributes.kind;
        let noted = known.as_ref().map(|known| known.at_home);
        let others = known.iter().flat_map(|known| known.places.iter());
        let places = std::iter::once(place).chain(others).cloned().collect();
        let node = self.names.adopt(Arc::new(node), kind, places, Some(place.clone()));
        self.names.note_read(id, inode, noted);
        self.names.bind(place.parent, &place.name, kind, id);
        Ok(node)
    }

    /// The name goes from its node.
    fn leave(&mut self, node: &Node, place: &Place, at_ns: i64, lsn: Lsn) {
        let is_directory = {
            let mut body = node.body_mut();
            let is_directory = body.attributes.kind == Kind::Directory;
            let counts = place.parent != ORPHANS || !self.nameless.contains(&node.id);
            let links = body.attributes.links.saturating_sub(u32::from(counts));
            body.attributes.links = if is_directory { 0 } else { links };
            body.attributes.changed_ns = at_ns.into();
            body.last = lsn;
            is_directory
        };
        self.names.unbind(place.parent, &place.name);
        self.names.touch_directory(place.parent, at_ns, -i64::from(is_directory));
    }

    fn make(&mut self, lsn: Lsn, record: &Record<'_>) -> Result<(), Errno> {
        let unit = self.space.unit;
        let attributes = made(record.node, &record.op, record.at_ns, unit);
        let mut attributes = attributes.ok_or(Errno::INVAL)?;
        let Op::Make { kind, target, .. } = record.op else { return Err(Errno::INVAL) };
        let place = self.place(record.path)?;
        if place.parent == ORPHANS {
            attributes.links = 0;
            self.nameless.insert(record.node);
        }
        let node = Node::from_log(attributes, target.to_vec(), lsn, unit);
        if let Some(known) = self.names.known(record.node) {
            node.inherit(known.count);
        }
        self.space.replayed(Cost::of_node(unit), lsn);
        self.names.put_made(Arc::new(node), kind, place.parent, &place.name);
        let subdirectories = i64::from(kind == Kind::Directory);
        self.names.touch_directory(place.parent, record.at_ns, subdirectories);
        self.names.forget_known(record.node);
        Ok(())
    }

    fn link(&mut self, lsn: Lsn, record: &Record<'_>, to: &[u8]) -> Result<(), Errno> {
        self.space.replayed(self.space.cost_of_link(self.home), lsn);
        let from = self.place(record.path)?;
        let node = self.node(record.node, &from)?;
        let to = self.place(to)?;
        let kind = {
            let mut body = node.body_mut();
            body.attributes.links += 1;
            body.attributes.changed_ns = record.at_ns.into();
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
        self.space.replayed(Cost::of_name(self.space.unit), lsn);
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
                body.attributes.links = body.attributes.links.saturating_sub(1);
                self.nameless.insert(record.node);
            } else if from.parent == ORPHANS {
                body.attributes.links += 1;
            }
            body.attributes.changed_ns = record.at_ns.into();
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

    /// Counts the room that a change of contents takes or gives back.
    fn allocate(&self, node: &Node, lsn: Lsn, record: &Record<'_>) -> Result<(), Errno> {
        let (offset, bytes, hole) = match record.op {
            Op::Write { offset, bytes } | Op::Reserve { offset, bytes } => (offset, bytes, false),
            Op::Zero { offset, bytes, hole } => (offset, bytes, hole),
            Op::SetSize { .. } => (0, 0, false),
            _ => return Ok(()),
        };
        self.know_allocated(node)?;
        let mut body = node.body_mut();
        match hole {
            true => {
                // Where that cannot be asked now, nothing is counted, as where a hole is one.
                let cost = self.space.cost_of_hole(self.home, &body, offset, bytes);
                self.space.replayed(cost.unwrap_or(Cost::NONE), lsn);
                self.space.punched(self.home, &mut body, offset, offset + bytes);
            }
            false => {
                let cost = self.space.cost_of_bytes(self.home, &body, offset, bytes);
                self.space.replayed(cost, lsn);
                body.allocate(|allocated| allocated.insert(offset, bytes));
            }
        }
        Ok(())
    }

    /// The home still has the file as it was before its first record. If another stands there, that
    /// is said to who asks for its bytes.
    fn know_allocated(&self, node: &Node) -> Result<(), Errno> {
        if node.body().allocated.is_some() {
            return Ok(());
        }
        let allocated = match self.names.hold(self.home, node.id) {
            Err(error) if is_other_inode(&error) => Allocated::none(self.space.unit),
            held => {
                let file = open_patiently(&*held?.ok_or(Errno::STALE)?)?;
                Allocated::of(&*file, &file.metadata()?, self.space.unit)?
            }
        };
        node.body_mut().allocated = Some(allocated);
        Ok(())
    }

    fn exchange(
        &mut self,
        lsn: Lsn,
        record: &Record<'_>,
        to: &[u8],
        other: NodeId,
    ) -> Result<(), Errno> {
        self.space.replayed(Cost::of_exchange(self.space.unit), lsn);
        let from = self.place(record.path)?;
        let to = self.place(to)?;
        let node = self.node(record.node, &from)?;
        let other = self.node(other, &to)?;
        exchanged(self.names, (&from, &node), (&to, &other), record.at_ns, lsn);
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
        self.allocate(&node, lsn, record)?;
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
            Op::SetXattr { name, value } => {
                let cost = self.space.cost_of_xattr(self.home, name, value);
                self.space.replayed(cost.tried_first(self.space.unit), lsn);
                body.xattrs.set(name, Some(value.into()), lsn);
                body.change(&Change::default(), record.at_ns, lsn);
            }
            Op::RemoveXattr { name } => {
                body.xattrs.set(name, None, lsn);
                body.change(&Change::default(), record.at_ns, lsn);
            }
            _ => body.touch(record.at_ns, lsn),
        }
        Ok(())
    }
}

/// Opens a file that somebody may have a lease on. He gives it up, or the kernel takes it.
fn open_patiently(held: &dyn Held) -> Result<Arc<dyn OpenFile>, Errno> {
    for _ in 0..LEASE_LOOKS {
        match held.open(false) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(LEASE_LOOK),
            opened => return Ok(opened?),
        }
    }
    Ok(held.open(false)?)
}

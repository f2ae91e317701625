//! What a stretch of the log amounts to.
//!
//! The cleaner does not repeat the log on the home record by record. It takes a *window* of frames
//! and applies what they amount to: first the names, in order, then for each node the bytes and
//! attributes it ends up with. A file made and removed inside the window costs nothing.
//!
//! A window may be applied twice, wholly or in part, because the machine may stop between applying
//! it and noting that in the log. Therefore no name is touched twice in one window: whether a step
//! is done can then be told by looking at the names. A frame that would touch a name again ends
//! the window before it. Inside one frame a barrier (names so far made durable) does the same.
//!
//! Promise: a pure function of the frames.
//! Never: reads the home.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use holdfast_io::{Change, Kind};
use holdfast_log::Lsn;

use crate::extents::{Extents, Piece, Source};
use crate::names::ORPHANS_NAME;
use crate::record::{Op, Record};
use crate::tree::NodeId;

/// One change of names. Each can be repeated: looking at the names tells whether it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The node comes to be under the path, in the directory `parent`.
    Make { node: NodeId, parent: NodeId, path: Vec<u8>, make: Make },
    /// A second name, in the directory `parent`.
    Link { node: NodeId, parent: NodeId, from: Vec<u8>, to: Vec<u8> },
    /// The name goes, if it is there.
    Remove { node: NodeId, path: Vec<u8> },
    /// The directory goes, if it is there.
    RemoveDir { node: NodeId, path: Vec<u8> },
    /// The name moves into the directory `parent`, unless it has, over the node `replaced`.
    Rename { node: NodeId, replaced: NodeId, parent: NodeId, from: Vec<u8>, to: Vec<u8> },
    /// All names changed so far become durable before the next step.
    Barrier,
    /// A file came to be and went.
    Nothing,
}

/// What a new node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Make {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u64,
    pub(crate) target: Vec<u8>,
}

/// What a node ends up with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Where it is once all names are applied.
    pub(crate) path: Vec<u8>,
    /// It came to be inside the window.
    pub(crate) made: bool,
    /// What the home's file holds behind this does not count.
    pub(crate) cut_bytes: Option<u64>,
    /// Its size, if something but a write changed it.
    pub(crate) size_bytes: Option<u64>,
    /// New bytes.
    pub(crate) extents: Extents,
    /// Ranges that get room.
    pub(crate) reserved: Vec<(u64, u64)>,
    /// New attributes.
    pub(crate) change: Change,
}

/// The frames that are applied together, and what they amount to.
#[derive(Debug, Default)]
pub(crate) struct Window {
    pub(crate) steps: Vec<Step>,
    pub(crate) contents: BTreeMap<NodeId, Contents>,
    /// Every node that a record is about.
    pub(crate) nodes: BTreeSet<NodeId>,
    /// Records taken in.
    pub(crate) records: u64,
    /// Names changed, whole paths.
    touched: BTreeSet<Vec<u8>>,
    /// Names made and removed again. A repetition makes and removes them for a while, so nothing
    /// but another new file may come to stand there in this window.
    passing: BTreeSet<Vec<u8>>,
    /// Which step makes a node.
    makes: HashMap<NodeId, usize>,
    /// Whose contents a path stands for.
    by_path: BTreeMap<Vec<u8>, NodeId>,
    /// Repeats what an earlier process may have begun: what passed is removed, should it be there.
    repeats: bool,
}

impl Window {
    /// An empty window. `repeats` if it starts where an earlier process may have applied more.
    pub(crate) fn new(repeats: bool) -> Window {
        Window { repeats, ..Window::default() }
    }

    /// Takes in the records of one frame, each with the LSN of its data. False, with nothing
    /// changed, if the frame must start a new window.
    pub(crate) fn take(&mut self, frame: Lsn, records: &[(Record<'_>, Lsn)]) -> bool {
        if self.records > 0 && records.iter().any(|(record, _)| self.conflicts(record)) {
            return false;
        }
        for (record, data) in records {
            if self.records > 0 && self.conflicts(record) {
                self.steps.push(Step::Barrier);
            }
            self.add(frame, record, *data);
            self.nodes.insert(record.node);
            if let Op::Rename { replaced, .. } = record.op {
                self.nodes.insert(replaced);
            }
            self.records += 1;
        }
        true
    }

    /// True if repeating the window could not tell whether the record's names have been changed.
    fn conflicts(&self, record: &Record<'_>) -> bool {
        let touched = |path: &[u8]| self.touched.contains(path);
        let used = |path: &[u8]| touched(path) || self.passing.contains(path);
        let path = record.path;
        match record.op {
            // What passed here is removed by a repetition, as a file.
            Op::Make { kind: Kind::Directory, .. } => used(path),
            Op::Make { .. } => touched(path),
            Op::RemoveDir => touched(path) || is_below(&self.passing, path),
            Op::Link { to } => used(path) || used(to),
            Op::Remove { survivor, last } => {
                let lost = !last && survivor.is_empty() && self.contents.contains_key(&record.node);
                (touched(path) && !self.is_pointless(record)) || lost
            }
            Op::Rename { to, .. } => {
                used(path) || used(to) || self.by_path.contains_key(to) || self.knows_below(path)
            }
            _ => false,
        }
    }

    /// True if names or contents below the path are in the window.
    fn knows_below(&self, path: &[u8]) -> bool {
        let below = [path, b"/"].concat();
        is_below(&self.touched, path) || is_below(&self.passing, path) || {
            let next = self.by_path.range(below.clone()..).next();
            next.is_some_and(|(other, _)| other.starts_with(&below))
        }
    }

    /// True if the record removes the only name of a file that was made in this window.
    fn is_pointless(&self, record: &Record<'_>) -> bool {
        let made_here = |contents: &Contents| contents.made && contents.path == record.path;
        matches!(record.op, Op::Remove { last: true, .. })
            && self.contents.get(&record.node).is_some_and(made_here)
            && self.makes.contains_key(&record.node)
    }

    fn add(&mut self, frame: Lsn, record: &Record<'_>, data: Lsn) {
        match record.op {
            Op::Make { .. } => self.make(record),
            Op::Link { to } => self.link(record, to),
            Op::Remove { survivor, last } => self.remove(record, survivor, last),
            Op::RemoveDir => {
                self.touch(record.path);
                self.forget(record.node);
                let (node, path) = (record.node, record.path.to_vec());
                self.steps.push(Step::RemoveDir { node, path });
            }
            Op::Rename { to, replaced } => self.rename(record, to, replaced),
            _ => self.fill(frame, record, data),
        }
    }

    /// The name is changed in this window, and must not be changed again.
    fn touch(&mut self, path: &[u8]) {
        self.touched.insert(path.to_vec());
    }

    fn make(&mut self, record: &Record<'_>) {
        let Op::Make { kind, mode, uid, gid, rdev, target } = record.op else { return };
        self.touch(record.path);
        let make = Make { kind, mode, uid, gid, rdev, target: target.to_vec() };
        let path = record.path.to_vec();
        let (node, parent) = (record.node, record.parent);
        self.makes.insert(node, self.steps.len());
        self.steps.push(Step::Make { node, parent, path, make });
        let contents = self.contents_of(record);
        contents.made = true;
        contents.cut_bytes = Some(0);
        contents.change.modified_ns = Some(record.at_ns);
    }

    /// The old name counts as touched too: a repetition must find it where it was.
    fn link(&mut self, record: &Record<'_>, to: &[u8]) {
        self.touch(record.path);
        self.touch(to);
        let (node, parent) = (record.node, record.parent);
        let (from, to) = (record.path.to_vec(), to.to_vec());
        self.steps.push(Step::Link { node, parent, from, to });
    }

    /// A file that came to be in this window and goes in it leaves no trace. Otherwise what it
    /// holds matters only if another name leads to it.
    fn remove(&mut self, record: &Record<'_>, survivor: &[u8], last: bool) {
        if self.is_pointless(record) {
            self.unmake(record);
            self.touched.remove(record.path);
            self.passing.insert(record.path.to_vec());
            self.forget(record.node);
            return;
        }
        self.touch(record.path);
        let (node, path) = (record.node, record.path.to_vec());
        self.steps.push(Step::Remove { node, path });
        let Some(contents) = self.contents.get_mut(&record.node) else { return };
        if contents.path != record.path {
            return;
        }
        if last || survivor.is_empty() {
            self.forget(record.node);
        } else {
            contents.path = survivor.to_vec();
            self.by_path.remove(record.path);
            self.by_path.insert(survivor.to_vec(), record.node);
        }
    }

    /// What the node ends up with is written under its new path: names are applied before contents.
    /// Takes back that the file was made. An earlier process may have come as far as making it, so
    /// a repetition removes it instead; windows end where they did the first time.
    fn unmake(&mut self, record: &Record<'_>) {
        let Some(made) = self.makes.remove(&record.node) else { return };
        let (node, path) = (record.node, record.path.to_vec());
        self.steps[made] = if self.repeats { Step::Remove { node, path } } else { Step::Nothing };
    }

    fn rename(&mut self, record: &Record<'_>, to: &[u8], replaced: NodeId) {
        self.touch(record.path);
        self.touch(to);
        let (from, to) = (record.path.to_vec(), to.to_vec());
        if let Some(node) = self.by_path.remove(&from) {
            self.by_path.insert(to.clone(), node);
            if let Some(contents) = self.contents.get_mut(&node) {
                contents.path.clone_from(&to);
            }
        }
        let (node, parent) = (record.node, record.parent);
        self.steps.push(Step::Rename { node, replaced, parent, from, to });
    }

    /// What the node would end up with does not matter any more.
    fn forget(&mut self, node: NodeId) {
        if let Some(contents) = self.contents.remove(&node) {
            self.by_path.remove(&contents.path);
        }
    }

    /// What the record's node ends up with so far.
    fn contents_of(&mut self, record: &Record<'_>) -> &mut Contents {
        self.contents.entry(record.node).or_insert_with(|| {
            self.by_path.insert(record.path.to_vec(), record.node);
            Contents { path: record.path.to_vec(), ..Contents::default() }
        })
    }

    /// Takes in a record that changes no name. Later bytes win over earlier ones.
    fn fill(&mut self, frame: Lsn, record: &Record<'_>, data: Lsn) {
        let at_ns = record.at_ns;
        let contents = self.contents_of(record);
        let piece = |offset, bytes, at, source| Piece { offset, bytes, at, source };
        match record.op {
            Op::Write { offset, bytes } => {
                contents.extents.insert(piece(offset, bytes, data, Source::Log));
                contents.change.modified_ns = Some(at_ns);
            }
            Op::Zero { offset, bytes, hole } => {
                let source = if hole { Source::Hole } else { Source::Zeros };
                contents.extents.insert(piece(offset, bytes, frame, source));
                contents.change.modified_ns = Some(at_ns);
            }
            Op::SetSize { size_bytes } => {
                contents.resize(size_bytes);
                contents.change.modified_ns = Some(at_ns);
            }
            Op::Reserve { offset, bytes } => {
                contents.reserved.push((offset, bytes));
                contents.change.modified_ns = Some(at_ns);
            }
            Op::Change { change } => merge(&mut contents.change, &change),
            _ => {}
        }
    }
}

impl Contents {
    /// What was written behind the new end is gone, and so is what the home's file holds there.
    fn resize(&mut self, size_bytes: u64) {
        self.extents.cut(size_bytes);
        self.reserved.retain(|(offset, _)| *offset < size_bytes);
        self.cut_bytes = Some(self.cut_bytes.map_or(size_bytes, |cut| cut.min(size_bytes)));
        self.size_bytes = Some(size_bytes);
    }

    /// Where the file ends, as far as the window tells: at least here.
    pub(crate) fn end_bytes(&self) -> u64 {
        let written = self.extents.iter().map(|piece| piece.offset + piece.bytes).max();
        written.unwrap_or(0).max(self.size_bytes.unwrap_or(0))
    }
}

/// True if one of the paths lies below `path`.
fn is_below(paths: &BTreeSet<Vec<u8>>, path: &[u8]) -> bool {
    let below = [path, b"/"].concat();
    let next = paths.range(below.clone()..).next();
    next.is_some_and(|other| other.starts_with(&below))
}

/// Later attributes win.
fn merge(into: &mut Change, from: &Change) {
    into.mode = from.mode.or(into.mode);
    into.uid = from.uid.or(into.uid);
    into.gid = from.gid.or(into.gid);
    into.accessed_ns = from.accessed_ns.or(into.accessed_ns);
    into.modified_ns = from.modified_ns.or(into.modified_ns);
}

/// True if the path lies among the orphans.
pub(crate) fn is_orphan(path: &[u8]) -> bool {
    path.strip_prefix(ORPHANS_NAME).is_some_and(|rest| rest.first() == Some(&b'/'))
}

#[cfg(test)]
mod tests;

//! What a stretch of the log amounts to.
//!
//! The cleaner does not repeat the log on the home record by record. It takes a *window* of frames
//! and applies what they amount to: first the names, in order, then for each node the bytes and
//! attributes it ends up with. A file made and removed inside the window costs nothing.
//!
//! A window may be applied twice, wholly or in part, because the machine may stop between applying
//! it and noting that in the log; and the second time it may be longer. Therefore no name is
//! touched twice in one window: whether a step is done can then be told by looking at the names. A
//! frame that would touch a name again ends the window before it. Inside one frame a barrier (names
//! so far made durable) does the same.
//!
//! Programs touch the same few names without end, so some of it is seen to be one step:
//! * A file made in the window can be made once more, because the window has all that is in it. So
//!   it may be made where another file went, and what stands there goes first; and one that is
//!   renamed is made under its last name.
//! * A directory made in the window that goes again, with all that was made below it, leaves
//!   nothing, and its name is free for another directory. A repetition takes one that it finds
//!   there for the next, because it may be full of what came to be in that, or removes it if none
//!   comes.
//! * A directory made in the window that is renamed, with nothing below it but what was made there,
//!   is made under its last name, and so is that.
//! * A second name of a file that goes again is not given, and one that is renamed is given as the
//!   last one. A file that is made and loses the name that makes it is made under the next.
//! * Two names that change places again and again do so once or not at all.
//! * A node that is moved and moved again, over nothing, is at one of its names and nothing else is
//!   at the others. So it is moved from wherever it is to its last name, which may be its first.
//! * A file that loses its last name moves among the orphans, for whoever may have it open, and
//!   goes from there when nobody has, nearly always a moment later: then its name is removed.
//!
//! Promise: a pure function of the frames.
//! Never: reads the home.

mod carried;
mod contents;
mod exchanged;
mod linked;
mod passed;
mod step;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use holdfast_io::tree::NodeId;
use holdfast_io::{Change, Kind};
use holdfast_log::Lsn;

use crate::changes::xattr::is_shadow;
pub(crate) use crate::clean::plan::contents::Contents;
use crate::clean::plan::step::Linked;
pub(crate) use crate::clean::plan::step::{Make, Pass, Step};
use crate::home::room_unit::RoomUnit;
use crate::overlay::extents::{Piece, Source};
use crate::own::ORPHANS_NAME;
use crate::record::{Op, Record};

/// What a barrier counts as, which is a sync or two: a part of what a window is.
pub(crate) const BARRIER_WORK_BYTES: u64 = 256 << 10;

/// The frames that are applied together, and what they amount to.
#[derive(Debug, Default)]
pub(crate) struct Window {
    pub(crate) steps: Vec<Step>,
    pub(crate) contents: BTreeMap<NodeId, Contents>,
    /// Every node that a record is about.
    pub(crate) nodes: BTreeSet<NodeId>,
    /// When a name in a directory changed last, by the directory's path: making the same changes
    /// later gives it another time. A directory with such a time is neither moved nor replaced in
    /// this window, because a name below it was touched.
    pub(crate) directory_times: BTreeMap<Vec<u8>, i64>,
    /// Records taken in.
    pub(crate) records: u64,
    /// Work of theirs that is no bytes of the log.
    pub(crate) unlogged_bytes: u64,
    /// Some of them have been put aside, so that the contents are not all there is of their nodes.
    pub(crate) passes_over: bool,
    /// Nodes whose making has been put aside.
    pub(crate) unmade: BTreeSet<NodeId>,
    /// Names changed, whole paths.
    touched: BTreeSet<Vec<u8>>,
    /// Names that other names are given from, and how many: a repetition must find them where they
    /// were.
    sources: BTreeMap<Vec<u8>, usize>,
    /// Names made and removed again. A repetition makes and removes them for a while, so nothing
    /// but another new file may come to stand there in this window.
    passing: BTreeSet<Vec<u8>>,
    /// The same of directories: nothing but another new directory may come to stand there.
    passing_directories: BTreeMap<Vec<u8>, Passed>,
    /// Who has been the owner of what the window makes, or of another that it made under the name.
    owners: BTreeMap<Vec<u8>, BTreeSet<u32>>,
    /// Names that nodes from before the window stood under which have gone, and which. They are
    /// free for what is made in the window, and for nothing else.
    gone: BTreeMap<Vec<u8>, NodeId>,
    /// Names that directories from before the window stood under which have gone, and whether
    /// another has been made there. They are free for new directories.
    gone_directories: BTreeMap<Vec<u8>, bool>,
    /// Which step makes a node that has one name and is no directory's.
    makes: HashMap<NodeId, usize>,
    /// The names of files that the window gave a second one.
    linked: HashMap<NodeId, Linked>,
    /// Which step makes a directory.
    makes_directories: HashMap<NodeId, usize>,
    /// Which step moves a node from before the window that was moved over nothing.
    moves: HashMap<NodeId, usize>,
    /// Whose contents a path stands for.
    by_path: BTreeMap<Vec<u8>, NodeId>,
    /// Which step lets two names change places.
    exchanges: BTreeMap<[Vec<u8>; 2], usize>,
    /// Repeats what an earlier process may have begun: what passed is removed, should it be there.
    pub(crate) repeats: bool,
    /// The home's file system tells for good which inode is which: so whether names have changed
    /// places, however often.
    pub(crate) tells_inodes: bool,
    /// What the home gives room in.
    pub(crate) unit: RoomUnit,
    /// It is to be known where it ends, and not what nodes end up with.
    pub(crate) is_outline: bool,
    /// Changes of names that are durable before the next, inside of frames.
    pub(crate) barriers: u64,
}

/// Directories of one name that were made and removed again.
#[derive(Debug, Default)]
struct Passed {
    /// Which step of a repetition removes what an earlier process may have made there.
    removal: Option<usize>,
    /// Extended attributes that they had, or lost.
    labels: BTreeSet<Vec<u8>>,
}

impl Window {
    /// An empty window. `repeats` if it starts where an earlier process may have applied more.
    pub(crate) fn new(repeats: bool) -> Window {
        Window { repeats, ..Window::default() }
    }

    /// An empty one that tells where it ends.
    pub(crate) fn outline(tells_inodes: bool) -> Window {
        Window { is_outline: true, tells_inodes, ..Window::default() }
    }

    /// Something changes of the node but its names.
    pub(crate) fn know(&mut self, node: NodeId, path: &[u8]) -> &mut Contents {
        self.contents.entry(node).or_insert_with(|| {
            self.by_path.insert(path.to_vec(), node);
            Contents { path: path.to_vec(), ..Contents::default() }
        })
    }

    /// Takes in the records of one frame, each with the LSN of its data; those are `passed` that
    /// have been put aside. False, with nothing changed, if the frame must start a new window.
    pub(crate) fn take(
        &mut self,
        frame: Lsn,
        records: &[(Record<'_>, Lsn)],
        passed: &[Pass],
    ) -> bool {
        let pass = |index: usize| passed.get(index).copied().unwrap_or_default();
        let mut all = records.iter().enumerate();
        if all.any(|(index, (record, _))| self.begins_anew(record, pass(index))) {
            return false;
        }
        for (index, (record, data)) in records.iter().enumerate() {
            if self.begins_anew(record, pass(index)) {
                self.part();
            }
            match pass(index) {
                Pass::Applied => self.take_in(frame, record, *data),
                pass => self.pass_over(record, pass),
            }
            self.records += 1;
        }
        true
    }

    /// True if the frame cannot be taken in behind what the window has.
    pub(crate) fn ends_before(&self, records: &[(Record<'_>, Lsn)]) -> bool {
        records.iter().any(|(record, _)| self.begins_anew(record, Pass::Applied))
    }

    /// True if the frame puts something from before the window in the place of what moves away in
    /// it, which takes a barrier.
    pub(crate) fn may_part(&self, records: &[(Record<'_>, Lsn)]) -> bool {
        let last = records.get(1..).and_then(|rest| rest.last());
        let node = last.filter(|(record, _)| record.changes_names()).map(|(record, _)| record.node);
        node.is_some_and(|node| !self.makes.contains_key(&node))
    }

    /// The record takes a name that this window has moved something from or made something under:
    /// what was moved or made so far must not be any later.
    fn part(&mut self) {
        self.barriers += 1;
        self.unlogged_bytes += BARRIER_WORK_BYTES;
        self.steps.push(Step::Barrier);
        self.settle_links();
        self.moves.clear();
        self.makes.clear();
        self.linked.clear();
        self.makes_directories.clear();
        self.exchanges.clear();
    }

    fn take_in(&mut self, frame: Lsn, record: &Record<'_>, data: Lsn) {
        if !self.is_exchanged_again(record) {
            self.unlogged_bytes += record.op.unlogged_bytes();
        }
        self.add(frame, record, data);
        self.nodes.insert(record.node);
        if let Op::Rename { replaced: other, .. } | Op::Exchange { other, .. } = record.op {
            self.nodes.insert(other);
        }
    }

    /// True if repeating the window could not tell whether the record's names have been changed.
    fn conflicts(&self, record: &Record<'_>) -> bool {
        let touched = |path: &[u8]| self.is_touched(path);
        let used = |path: &[u8]| touched(path) || self.has_passed(path);
        let path = record.path;
        match record.op {
            // What passed here is removed by a repetition, as a file.
            Op::Make { kind: Kind::Directory, .. } => !self.is_free_for_directory(path),
            Op::Make { .. } => {
                let is_free = !touched(path) || self.gone.contains_key(path);
                !is_free || self.passing_directories.contains_key(path)
            }
            Op::RemoveDir => {
                !self.is_unmade(record) && (touched(path) || self.has_passed_below(path))
            }
            Op::Link { to } => self.keeps_link(record, to),
            Op::Remove { survivor, last } => {
                let lost = !last
                    && survivor.is_empty()
                    && self.contents.contains_key(&record.node)
                    && !self.is_linked_and_made(record.node);
                let passes =
                    self.is_pointless(record) || self.is_left(record) || self.is_unlinked(record);
                (touched(path) && !passes) || lost
            }
            Op::Rename { to, replaced } => {
                if self.is_made_elsewhere(record, to, replaced)
                    || self.is_moved_on(record, to, replaced)
                    || self.is_carried(record, to, replaced)
                    || self.is_relinked(record, to, replaced)
                {
                    return false;
                }
                // A directory may be replaced that names of this window were in.
                let knows_below = self.knows_below(path) || self.knows_below(to);
                used(path) || used(to) || self.by_path.contains_key(to) || knows_below
            }
            // Contents under either name go along; those below would have to be renamed.
            Op::Exchange { to, .. } => {
                let is_used = (used(path) || used(to)) && !self.is_exchanged_again(record);
                is_used || self.knows_below(path) || self.knows_below(to)
            }
            _ => false,
        }
    }

    /// True if the name is changed in this window, or must be where it was for another.
    fn is_touched(&self, path: &[u8]) -> bool {
        self.touched.contains(path) || self.sources.contains_key(path)
    }

    /// True if the name was made and removed again in this window.
    fn has_passed(&self, path: &[u8]) -> bool {
        self.passing.contains(path) || self.passing_directories.contains_key(path)
    }

    /// True if a name below the path was.
    fn has_passed_below(&self, path: &[u8]) -> bool {
        is_below(&self.passing, path) || is_key_below(&self.passing_directories, path)
    }

    /// Files and directories that are to be durable, on a home that syncs each of them.
    pub(crate) fn syncs(&self) -> usize {
        self.contents.len() + self.directory_times.len()
    }

    /// True if names or contents below the path are in the window.
    fn knows_below(&self, path: &[u8]) -> bool {
        self.holds_below(path) || self.has_passed_below(path)
    }

    /// True if names below the path are changed in this window, and more than made and removed.
    fn holds_below(&self, path: &[u8]) -> bool {
        is_below(&self.touched, path)
            || is_key_below(&self.sources, path)
            || is_key_below(&self.by_path, path)
    }

    /// True if more is known below the path than what came and went, or went.
    fn holds_live_below(&self, path: &[u8]) -> bool {
        let below = [path, b"/"].concat();
        let touched = self.touched.range(below.clone()..);
        touched.take_while(|at| at.starts_with(&below)).any(|at| !self.has_gone(at))
            || is_key_below(&self.sources, path)
            || is_key_below(&self.by_path, path)
    }

    /// True if the record renames a file that was made in this window to where it might as well
    /// have been made: where nothing is, or what may go.
    fn is_made_elsewhere(&self, record: &Record<'_>, to: &[u8], replaced: NodeId) -> bool {
        let is_made = |node: NodeId, path: &[u8]| {
            let contents = self.contents.get(&node);
            self.makes.contains_key(&node) && contents.is_some_and(|known| known.path == path)
        };
        let replaced = self.still_at(to, replaced);
        let free = match self.by_path.get(to) {
            Some(other) => *other == replaced && is_made(replaced, to),
            None if self.gone.contains_key(to) => replaced == NodeId(0),
            None => {
                let has_passed = self.passing_directories.contains_key(to);
                !self.is_touched(to) && !has_passed && !self.knows_below(to)
            }
        };
        free && record.path != to && is_made(record.node, record.path)
    }

    /// The node that a rename replaces, unless it has been moved away and lives on: then none.
    fn still_at(&self, to: &[u8], replaced: NodeId) -> NodeId {
        let elsewhere = self.contents.get(&replaced).is_some_and(|known| known.path != to);
        let moved = self.makes.contains_key(&replaced) && elsewhere;
        if moved || self.orphan_of(replaced).is_some() { NodeId(0) } else { replaced }
    }

    /// Where among the orphans a step moves a node that stood elsewhere before the window.
    fn orphan_of(&self, node: NodeId) -> Option<&[u8]> {
        match self.moves.get(&node).map(|step| &self.steps[*step]) {
            Some(Step::Move { to, .. }) if is_orphan(to) => Some(to),
            _ => None,
        }
    }

    /// True if the record removes an orphan that a step of this window moved there.
    fn is_left(&self, record: &Record<'_>) -> bool {
        matches!(record.op, Op::Remove { last: true, .. })
            && self.orphan_of(record.node) == Some(record.path)
    }

    /// True if the record moves a node on that was moved over nothing in this window: over nothing
    /// again, to a new name or back to one of its own. What went to the orphans stays there: its
    /// name is free for another file, which is made before.
    fn is_moved_on(&self, record: &Record<'_>, to: &[u8], replaced: NodeId) -> bool {
        let step = self.moves.get(&record.node).map(|step| &self.steps[*step]);
        let Some(Step::Move { from, via, to: last, .. }) = step else { return false };
        let is_new = !self.is_touched(to) && !self.has_passed(to);
        (is_new || via.contains(to))
            && self.gone.get(from) != Some(&record.node)
            && last == record.path
            && replaced == NodeId(0)
            && !self.by_path.contains_key(to)
            && !self.knows_below(record.path)
            && !self.knows_below(to)
    }

    /// True if the record removes the only name of a file that was made in this window.
    fn is_pointless(&self, record: &Record<'_>) -> bool {
        let made_here = |contents: &Contents| contents.made && contents.path == record.path;
        matches!(record.op, Op::Remove { last: true, .. })
            && self.contents.get(&record.node).is_some_and(made_here)
            && self.makes.contains_key(&record.node)
    }

    /// True if the record removes a directory that was made in this window, and nothing came to be
    /// in it but what was made and removed there.
    fn is_unmade(&self, record: &Record<'_>) -> bool {
        self.makes_directories.contains_key(&record.node) && !self.holds_live_below(record.path)
    }

    /// True if a directory that went from the path came, or may have come, again in this window.
    pub(crate) fn comes_again(&self, path: &[u8]) -> bool {
        self.gone_directories.get(path).is_some_and(|comes_again| *comes_again)
    }

    /// Whether what has this owner may be what the window made of the node, or under the path.
    pub(crate) fn may_own(&self, node: NodeId, path: &[u8], uid: u32) -> bool {
        let given = self.contents.get(&node).and_then(|contents| contents.change.uid);
        given == Some(uid) || self.owners.get(path).is_some_and(|owners| owners.contains(&uid))
    }

    fn add(&mut self, frame: Lsn, record: &Record<'_>, data: Lsn) {
        self.time_directories(record);
        match record.op {
            Op::Make { .. } => self.make(record),
            Op::Link { to } => self.link(record, to),
            Op::Remove { survivor, last } => self.remove(record, survivor, last),
            Op::RemoveDir if self.is_unmade(record) => {
                if let Some(made) = self.makes_directories.remove(&record.node) {
                    self.leave_directory(made, record.node, record.path);
                }
                self.forget(record.node);
            }
            Op::RemoveDir => {
                self.touch(record.path);
                self.gone_directories.insert(record.path.to_vec(), false);
                self.forget(record.node);
                // What was moved out of it has to be out by then.
                self.moves.clear();
                let (node, path) = (record.node, record.path.to_vec());
                self.steps.push(Step::RemoveDir { node, path });
            }
            Op::Rename { to, replaced } => self.rename(record, to, replaced),
            Op::Exchange { to, other, from_parent } => {
                self.exchange(frame, record, (to, other, from_parent));
            }
            _ => self.fill(frame, record, data),
        }
    }

    /// Which directories the record gives a time, and which it takes it from.
    fn time_directories(&mut self, record: &Record<'_>) {
        let (path, at_ns) = (record.path, record.at_ns);
        match record.op {
            Op::Make { .. } | Op::Remove { .. } => self.time_above(path, at_ns),
            Op::Link { to } => self.time_above(to, at_ns),
            Op::RemoveDir => {
                self.directory_times.remove(path);
                self.time_above(path, at_ns);
            }
            Op::Rename { to, .. } => {
                self.directory_times.remove(to);
                self.time_above(path, at_ns);
                self.time_above(to, at_ns);
            }
            Op::Exchange { to, .. } => {
                self.time_above(path, at_ns);
                self.time_above(to, at_ns);
            }
            Op::Change { change } if change.modified_ns.is_some() => {
                self.directory_times.remove(path);
            }
            _ => {}
        }
    }

    /// A name changed in the directory above it. Nobody asks when one of the orphans' did.
    fn time_above(&mut self, path: &[u8], at_ns: i64) {
        let slash = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        if path[..slash] != *ORPHANS_NAME {
            self.directory_times.insert(path[..slash].to_vec(), at_ns);
        }
    }

    /// The name is changed in this window, and must not be changed again.
    fn touch(&mut self, path: &[u8]) {
        self.touched.insert(path.to_vec());
    }

    fn make(&mut self, record: &Record<'_>) {
        let Op::Make { kind, mode, uid, gid, rdev, target } = record.op else { return };
        self.owners.entry(record.path.to_vec()).or_default().insert(uid);
        let is_repeated = self.repeats && kind == Kind::File;
        let contents = self.contents_of(record);
        contents.made = true;
        contents.cut_bytes = Some(0);
        if is_repeated {
            // It may be there since before a death, and somebody may have written to it: what the
            // log knows to be empty is looked at.
            contents.size_bytes = Some(0);
        }
        contents.change.accessed_ns = Some(record.at_ns.into());
        contents.change.modified_ns = Some(record.at_ns.into());
        let over = self.gone.get(record.path).copied();
        let make = Make { kind, mode, uid, gid, rdev, target: target.to_vec() };
        self.make_under(record.node, record.parent, record.path.to_vec(), make, over);
    }

    /// A node whose contents are known is made under the path, now.
    fn make_under(
        &mut self,
        node: NodeId,
        parent: NodeId,
        path: Vec<u8>,
        make: Make,
        over: Option<NodeId>,
    ) {
        self.touch(&path);
        let over = over.filter(|_| make.kind != Kind::Directory);
        match make.kind {
            Kind::Directory => {
                self.makes_directories.insert(node, self.steps.len());
                let labels = self.take_over(&path);
                if let Some(contents) = self.contents.get_mut(&node) {
                    for label in labels {
                        contents.xattrs.entry(label).or_insert(None);
                    }
                }
            }
            _ => drop(self.makes.insert(node, self.steps.len())),
        }
        self.steps.push(Step::Make { node, parent, path, make, over });
    }

    /// A directory is made, perhaps where another was. Returns which extended attributes a
    /// repetition may find there, because that had them.
    fn take_over(&mut self, path: &[u8]) -> BTreeSet<Vec<u8>> {
        if let Some(comes_again) = self.gone_directories.get_mut(path) {
            *comes_again = true;
        }
        let Some(passed) = self.passing_directories.get_mut(path) else { return BTreeSet::new() };
        let Some(removal) = passed.removal.take() else { return BTreeSet::new() };
        self.steps[removal] = Step::Nothing;
        passed.labels.clone()
    }

    /// Takes back that a directory was made under the path. A repetition removes it once it has
    /// removed all that an earlier process may have made in it.
    fn leave_directory(&mut self, made: usize, node: NodeId, path: &[u8]) {
        self.steps[made] = Step::Nothing;
        if !self.gone_directories.contains_key(path) {
            self.touched.remove(path);
        }
        let labels = self.contents.get(&node).map(|contents| contents.xattrs.keys());
        let passed = self.passing_directories.entry(path.to_vec()).or_default();
        passed.labels.extend(labels.into_iter().flatten().cloned());
        if self.repeats {
            passed.removal = Some(self.steps.len());
            self.steps.push(Step::RemoveDir { node, path: path.to_vec() });
        }
    }

    /// A file that came to be in this window and goes in it leaves no trace. Otherwise what it
    /// holds matters only if another name leads to it.
    fn remove(&mut self, record: &Record<'_>, survivor: &[u8], last: bool) {
        if self.is_pointless(record) {
            self.unmake(record.node, record.path);
            self.forget(record.node);
            return;
        }
        if self.is_unlinked(record) {
            self.unlink(record, survivor);
            return;
        }
        if self.is_left(record) {
            self.unmove(record.node);
            self.forget(record.node);
            return;
        }
        self.touch(record.path);
        let (node, path) = (record.node, record.path.to_vec());
        self.gone.insert(path.clone(), node);
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

    /// Takes back that the file was made. An earlier process may have come as far as making it, so
    /// a repetition removes it instead; windows end no earlier than they did the first time.
    fn unmake(&mut self, node: NodeId, path: &[u8]) {
        let Some(made) = self.makes.remove(&node) else { return };
        let Step::Make { over, .. } = self.steps[made] else { return };
        self.take_away(made, node, path, over);
    }

    /// Takes back that a step gave the node this name, in the place of `over`.
    fn take_away(&mut self, step: usize, node: NodeId, path: &[u8], over: Option<NodeId>) {
        let gone = over.or(self.repeats.then_some(node));
        let path = path.to_vec();
        if !self.gone.contains_key(&path) {
            self.touched.remove(&path);
            self.passing.insert(path.clone());
        }
        self.steps[step] = match gone {
            Some(node) => Step::Remove { node, path },
            None => Step::Nothing,
        };
    }

    /// The node goes from its name instead of moving. An earlier process may have moved it. What
    /// came to stand under the name since takes its place: a removal would, repeated, remove that.
    fn unmove(&mut self, node: NodeId) {
        let Some(moved) = self.moves.remove(&node) else { return };
        let Step::Move { from, via, .. } = self.steps[moved].clone() else { return };
        if self.repeats {
            let others = via.into_iter().filter(|path| *path != from);
            self.steps.extend(others.map(|path| Step::Remove { node, path }));
        }
        let takes_its_place = |step: &Step| match step {
            Step::Make { path, .. } => *path == from,
            Step::Rename { to, .. } => *to == from,
            _ => false,
        };
        self.steps[moved] = match self.steps[moved..].iter().any(takes_its_place) {
            true => Step::Nothing,
            false => Step::Remove { node, path: from },
        };
    }

    /// What the node ends up with is written under its new path: names are applied before contents.
    fn carry(&mut self, from: &[u8], to: &[u8]) {
        let Some(node) = self.by_path.remove(from) else { return };
        self.by_path.insert(to.to_vec(), node);
        if let Some(contents) = self.contents.get_mut(&node) {
            contents.path = to.to_vec();
        }
    }

    /// The file is made under its new name, in the place of what stands there.
    fn make_elsewhere(&mut self, record: &Record<'_>, to: &[u8], replaced: NodeId) {
        let (node, parent, path) = (record.node, record.parent, to.to_vec());
        let step = self.makes.get(&node).map(|step| self.steps[*step].clone());
        let Some(Step::Make { make, .. }) = step else { return };
        self.unmake(node, record.path);
        let over = match self.still_at(to, replaced) {
            NodeId(0) => self.gone.get(to).copied(),
            made if self.makes.contains_key(&made) => {
                self.forget(made);
                self.unmake_under(made)
            }
            old => {
                self.gone.insert(path.clone(), old);
                Some(old)
            }
        };
        self.touch(to);
        self.carry(record.path, to);
        self.inherit_owners(record.path, to);
        self.makes.insert(node, self.steps.len());
        // Here too something may stand that an earlier process made.
        let over = over.or(self.repeats.then_some(node));
        self.steps.push(Step::Make { node, parent, path, make, over });
    }

    /// What stood under the one name comes to stand under the other, whoever owned it.
    fn inherit_owners(&mut self, from: &[u8], to: &[u8]) {
        let owners = self.owners.get(from).cloned().unwrap_or_default();
        self.owners.entry(to.to_vec()).or_default().extend(owners);
    }

    /// Takes back that a file was made whose name another takes. Returns what it stood in for.
    fn unmake_under(&mut self, node: NodeId) -> Option<NodeId> {
        let made = self.makes.remove(&node)?;
        match std::mem::replace(&mut self.steps[made], Step::Nothing) {
            Step::Make { over, .. } => over,
            _ => None,
        }
    }

    /// The node is moved to its newest name at once, where that is done now: what has to be there
    /// by then is.
    fn move_on(&mut self, record: &Record<'_>, to: &[u8]) {
        let Some(moved) = self.moves.remove(&record.node) else { return };
        let step = std::mem::replace(&mut self.steps[moved], Step::Nothing);
        let Step::Move { node, from, mut via, .. } = step else { return };
        self.touch(to);
        self.carry(record.path, to);
        via.insert(to.to_vec());
        self.moves.insert(node, self.steps.len());
        self.steps.push(Step::Move { node, parent: record.parent, from, via, to: to.to_vec() });
    }

    fn rename(&mut self, record: &Record<'_>, to: &[u8], replaced: NodeId) {
        if self.is_made_elsewhere(record, to, replaced) {
            return self.make_elsewhere(record, to, replaced);
        }
        if self.is_moved_on(record, to, replaced) {
            return self.move_on(record, to);
        }
        if self.is_carried(record, to, replaced) {
            return self.carry_directory(record, to);
        }
        if self.is_relinked(record, to, replaced) {
            return self.relink(record, to);
        }
        let is_first = !self.is_touched(record.path) && !self.is_touched(to);
        self.touch(record.path);
        self.touch(to);
        self.carry(record.path, to);
        let (node, parent) = (record.node, record.parent);
        let (from, to) = (record.path.to_vec(), to.to_vec());
        if replaced != NodeId(0) {
            self.steps.push(Step::Rename { node, replaced, parent, from, to });
            return;
        }
        if is_first {
            self.moves.insert(node, self.steps.len());
            // It does not come back, so something that is made may come to stand there.
            if is_orphan(&to) {
                self.gone.insert(from.clone(), node);
            }
        }
        let via = BTreeSet::from([from.clone(), to.clone()]);
        self.steps.push(Step::Move { node, parent, from, via, to });
    }

    /// What the node would end up with does not matter any more.
    fn forget(&mut self, node: NodeId) {
        if let Some(contents) = self.contents.remove(&node) {
            self.by_path.remove(&contents.path);
        }
    }

    /// What the record's node ends up with so far.
    fn contents_of(&mut self, record: &Record<'_>) -> &mut Contents {
        self.know(record.node, record.path)
    }

    /// What the window makes has another owner, by whichever name.
    fn note_owner(&mut self, record: &Record<'_>, uid: u32) {
        // A name that is given later has the owners of the one that it is given from.
        let linked = self.linked.get_mut(&record.node).filter(|linked| linked.made.is_some());
        let is_noted = linked.is_some_and(|linked| !linked.owners.insert(uid));
        let given = self.names_given(record.node).filter(|_| !is_noted);
        for path in given.chain([record.path]).map(<[u8]>::to_vec).collect::<Vec<_>>() {
            self.owners.entry(path).or_default().insert(uid);
        }
    }

    /// Takes in a record that changes no name. Later bytes win over earlier ones.
    fn fill(&mut self, frame: Lsn, record: &Record<'_>, data: Lsn) {
        let (at_ns, unit, is_outline) = (record.at_ns, self.unit, self.is_outline);
        let contents = self.contents_of(record);
        if is_outline {
            return;
        }
        let piece = |offset, bytes, at, source| Piece { offset, bytes, at, source };
        match record.op {
            Op::Write { offset, bytes } => {
                contents.extents.insert(piece(offset, bytes, data, Source::Log));
                contents.change.modified_ns = Some(at_ns.into());
            }
            Op::Zero { offset, bytes, hole: true } => {
                contents.punch(offset, bytes, frame, unit);
                contents.change.modified_ns = Some(at_ns.into());
            }
            Op::Zero { offset, bytes, hole: false } => {
                contents.extents.insert(piece(offset, bytes, frame, Source::Zeros));
                contents.change.modified_ns = Some(at_ns.into());
            }
            Op::SetSize { size_bytes } => {
                contents.resize(size_bytes, frame, unit);
                contents.change.modified_ns = Some(at_ns.into());
            }
            Op::Reserve { offset, bytes } => {
                contents.reserved.insert(piece(offset, bytes, frame, Source::Zeros));
                contents.change.modified_ns = Some(at_ns.into());
            }
            Op::Change { change } => {
                merge(&mut contents.change, &change);
                if let Some(uid) = change.uid.filter(|_| contents.made) {
                    self.note_owner(record, uid);
                }
            }
            // An earlier version took the second name of a list for an attribute.
            Op::SetXattr { name, .. } | Op::RemoveXattr { name } if is_shadow(name) => {}
            Op::SetXattr { name, value } => {
                contents.xattrs.insert(name.to_vec(), Some(value.to_vec()));
            }
            Op::RemoveXattr { name } => {
                contents.xattrs.insert(name.to_vec(), None);
            }
            _ => {}
        }
    }
}

/// True if one of the paths lies below `path`.
fn is_below(paths: &BTreeSet<Vec<u8>>, path: &[u8]) -> bool {
    let below = [path, b"/"].concat();
    let next = paths.range(below.clone()..).next();
    next.is_some_and(|other| other.starts_with(&below))
}

/// The same of the paths that something is known of.
fn is_key_below<T>(paths: &BTreeMap<Vec<u8>, T>, path: &[u8]) -> bool {
    let below = [path, b"/"].concat();
    let next = paths.range(below.clone()..).next();
    next.is_some_and(|(other, _)| other.starts_with(&below))
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

//! Second names that come and go in a window.
//!
//! Promise: a name that a file gets in the window and loses again is not given; one that it gets
//! and that is renamed is given as it is called last. A file that is made and loses its first name
//! is made under the next, so what it costs is what is left of it.
//! Never: takes back a name that it did not give, or the name that others were given from.

use super::{Linked, Step, Window, is_orphan};
use crate::record::{Op, Record};
use holdfast_io::tree::NodeId;

impl Window {
    /// True if a second name cannot be given: where it goes something may stand that a repetition
    /// would take for it, or it is not known what stands where it is from.
    pub(super) fn keeps_link(&self, record: &Record<'_>, to: &[u8]) -> bool {
        let path = record.path;
        // One file may get any number of names, from the same one too.
        let is_from_there = !self.touched.contains(path) && !self.has_passed(path);
        !self.is_free_for_link(to) || !(is_from_there || self.gives(record.node, path))
    }

    /// True if a second name may be given there: nothing is, or a repetition does not find it.
    fn is_free_for_link(&self, to: &[u8]) -> bool {
        let is_free = !self.is_touched(to) || self.gone.contains_key(to);
        is_free && !self.passing_directories.contains_key(to)
    }

    /// True if the record renames one of several names, and the window gave that one: another might
    /// as well have been given.
    pub(super) fn is_relinked(&self, record: &Record<'_>, to: &[u8], replaced: NodeId) -> bool {
        replaced == NodeId(0)
            && record.path != to
            && !is_orphan(to)
            && self.linked.contains_key(&record.node)
            && self.gives(record.node, record.path)
            && self.is_free_for_link(to)
    }

    /// True if the record takes away one of several names, and the window gave that one.
    pub(super) fn is_unlinked(&self, record: &Record<'_>) -> bool {
        matches!(record.op, Op::Remove { .. })
            && self.linked.contains_key(&record.node)
            && self.gives(record.node, record.path)
    }

    /// True if the window makes the node, and it has several names.
    pub(super) fn is_linked_and_made(&self, node: NodeId) -> bool {
        self.linked.get(&node).is_some_and(|linked| linked.made.is_some())
    }

    /// True if the node has the name by a step of this window that can be taken back.
    fn gives(&self, node: NodeId, path: &[u8]) -> bool {
        let links = self.linked.get(&node).is_some_and(|linked| linked.by_name.contains_key(path));
        links || self.name_made(node) == Some(path)
    }

    /// The names that the node has by such steps.
    pub(super) fn names_given(&self, node: NodeId) -> impl Iterator<Item = &[u8]> {
        let links = self.linked.get(&node).into_iter();
        let links = links.flat_map(|linked| linked.by_name.keys().map(Vec::as_slice));
        self.name_made(node).into_iter().chain(links)
    }

    /// The name that a step makes the node under.
    fn name_made(&self, node: NodeId) -> Option<&[u8]> {
        let made = self.makes.get(&node).copied();
        let made = made.or_else(|| self.linked.get(&node).and_then(|linked| linked.made));
        match &self.steps[made?] {
            Step::Make { path, .. } => Some(path),
            _ => None,
        }
    }

    pub(super) fn link(&mut self, record: &Record<'_>, to: &[u8]) {
        self.touch(to);
        let (node, parent) = (record.node, record.parent);
        // With two names it is neither made nor moved by one step.
        let made = self.makes.remove(&node);
        self.moves.remove(&node);
        let new = || Linked { made, ..Linked::default() };
        let linked = self.linked.entry(node).or_insert_with(new);
        linked.links.insert(self.steps.len());
        linked.by_name.insert(to.to_vec(), self.steps.len());
        let from = match linked.made.map(|made| &self.steps[made]) {
            Some(Step::Make { path, .. }) => {
                let path = path.clone();
                self.inherit_owners(&path, to);
                path
            }
            _ => {
                *self.sources.entry(record.path.to_vec()).or_default() += 1;
                record.path.to_vec()
            }
        };
        self.steps.push(Step::Link { node, parent, from, to: to.to_vec() });
    }

    /// The file gets the new name from where it got the old one, which is taken back.
    pub(super) fn relink(&mut self, record: &Record<'_>, to: &[u8]) {
        let linked = self.linked.get(&record.node);
        let step = linked.and_then(|linked| linked.by_name.get(record.path));
        let source = step.and_then(|step| match &self.steps[*step] {
            Step::Link { from, .. } => Some(from.clone()),
            _ => None,
        });
        let from = source.unwrap_or_else(|| record.path.to_vec());
        self.link(&Record { path: &from, ..*record }, to);
        self.unlink(record, to);
    }

    /// Takes back that the file got the name.
    pub(super) fn unlink(&mut self, record: &Record<'_>, survivor: &[u8]) {
        let (node, path) = (record.node, record.path);
        let Some(mut linked) = self.linked.remove(&node) else { return };
        let survivor = match linked.by_name.remove(path) {
            Some(step) => {
                linked.links.remove(&step);
                self.take_back_link(step, node, path);
                survivor.to_vec()
            }
            None => self.make_under_next(node, &mut linked),
        };
        if self.by_path.get(path) == Some(&node) {
            self.carry(path, &survivor);
        }
        match linked.made {
            Some(made) if linked.links.is_empty() => drop(self.makes.insert(node, made)),
            None if linked.links.is_empty() => {}
            _ => drop(self.linked.insert(node, linked)),
        }
    }

    fn take_back_link(&mut self, step: usize, node: NodeId, path: &[u8]) {
        let taken = std::mem::replace(&mut self.steps[step], Step::Nothing);
        let Step::Link { from, .. } = taken else { return };
        if let Some(names) = self.sources.get_mut(&from) {
            *names -= 1;
            if *names == 0 {
                self.sources.remove(&from);
            }
        }
        self.take_away(step, node, path, None);
    }

    /// The file that loses its first name is made where it gets the next one, and has all others
    /// from there. Returns that name.
    fn make_under_next(&mut self, node: NodeId, linked: &mut Linked) -> Vec<u8> {
        let (Some(made), Some(next)) = (linked.made, linked.links.pop_first()) else {
            return Vec::new();
        };
        let (first, second) = (self.steps[made].clone(), self.steps[next].clone());
        let (Step::Make { path, make, over, .. }, Step::Link { parent, to, .. }) = (first, second)
        else {
            return Vec::new();
        };
        self.take_away(made, node, &path, over);
        let over = self.gone.get(&to).copied().or(self.repeats.then_some(node));
        self.steps[next] = Step::Make { node, parent, path: to.clone(), make, over };
        linked.made = Some(next);
        linked.by_name.remove(&to);
        linked.is_made_elsewhere = true;
        to
    }

    /// Every further name of a file that the window makes is given from where that is made last.
    /// Once for all of them, because a file may lose one name after the other.
    pub(crate) fn settle_links(&mut self) {
        for linked in self.linked.values_mut().filter(|linked| linked.is_made_elsewhere) {
            linked.is_made_elsewhere = false;
            let made = linked.made.map(|made| self.steps[made].clone());
            let Some(Step::Make { path, .. }) = made else { continue };
            for step in &linked.links {
                if let Step::Link { from, .. } = &mut self.steps[*step] {
                    from.clone_from(&path);
                }
            }
        }
    }
}

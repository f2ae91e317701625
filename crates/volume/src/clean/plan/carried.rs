//! Directories that a window makes and renames.
//!
//! Promise: such a directory is made under its last name, with all that the window makes below it.
//! What an earlier time may have made under the names before is removed by a repetition.
//! Never: carries what is from before the window, or has a name outside.

use holdfast_io::Kind;

use super::{Step, Window, is_key_below};
use crate::record::Record;
use holdfast_io::tree::NodeId;

impl Window {
    /// True if the record renames a directory that the window makes, with all below it, to where
    /// nothing is: it might as well be made there.
    pub(super) fn is_carried(&self, record: &Record<'_>, to: &[u8], replaced: NodeId) -> bool {
        let path = record.path;
        replaced == NodeId(0)
            && path != to
            && self.by_path.get(path) == Some(&record.node)
            && self.makes_directories.contains_key(&record.node)
            && self.makes_all_below(path)
            && self.is_free_for_directory(to)
            && !self.by_path.contains_key(to)
            && !self.holds_live_below(to)
    }

    /// True if a directory may be made under the path: nothing is there that has not gone.
    pub(super) fn is_free_for_directory(&self, path: &[u8]) -> bool {
        let has_gone = self.gone_directories.contains_key(path);
        (!self.is_touched(path) || has_gone) && !self.passing.contains(path)
    }

    /// True if all that the window knows below the path is made by it, or has gone.
    fn makes_all_below(&self, path: &[u8]) -> bool {
        let is_made = |node: NodeId| {
            self.makes.contains_key(&node) || self.makes_directories.contains_key(&node)
        };
        let below = [path, b"/"].concat();
        let touched = self.touched.range(below.clone()..);
        let mut touched = touched.take_while(|at| at.starts_with(&below));
        !is_key_below(&self.sources, path)
            && touched.all(|at| self.by_path.contains_key(at) || self.has_gone(at))
            && self.within(path).all(|(_, node)| is_made(node))
    }

    /// True if what stood there before the window went in it.
    pub(super) fn has_gone(&self, path: &[u8]) -> bool {
        self.gone.contains_key(path) || self.gone_directories.contains_key(path)
    }

    /// The nodes at and below a path whose contents the window knows, parents first.
    fn within(&self, path: &[u8]) -> impl Iterator<Item = (Vec<u8>, NodeId)> {
        let below = [path, b"/"].concat();
        let at = self.by_path.get_key_value(path);
        let rest = self.by_path.range(below.clone()..);
        let rest = rest.take_while(move |(at, _)| at.starts_with(&below));
        at.into_iter().chain(rest).map(|(at, node)| (at.clone(), *node))
    }

    /// The directory is made under its new name, and all below it there.
    pub(super) fn carry_directory(&mut self, record: &Record<'_>, to: &[u8]) {
        let within: Vec<_> = self.within(record.path).collect();
        let mut steps: Vec<(usize, Step)> = Vec::new();
        // What is in a directory goes before it.
        for (path, node) in within.iter().rev() {
            let made = self.makes.remove(node).or_else(|| self.makes_directories.remove(node));
            let Some(made) = made else { continue };
            steps.push((made, self.steps[made].clone()));
            self.leave(made, *node, path);
        }
        // The order in which they were made: each directory was there before what is in it.
        steps.sort_by_key(|(made, _)| *made);
        for (_, step) in steps {
            let Step::Make { node, parent, path, make, .. } = step else { continue };
            let parent = if path == record.path { record.parent } else { parent };
            let new = [to, &path[record.path.len()..]].concat();
            self.carry(&path, &new);
            self.inherit_owners(&path, &new);
            if let Some(at_ns) = self.directory_times.remove(&path) {
                self.directory_times.insert(new.clone(), at_ns);
            }
            let over = self.gone.get(&new).copied().or(self.repeats.then_some(node));
            self.make_under(node, parent, new, make, over);
        }
    }

    /// Takes back that a step made the node under this name.
    fn leave(&mut self, made: usize, node: NodeId, path: &[u8]) {
        match &self.steps[made] {
            Step::Make { make, over, .. } if make.kind != Kind::Directory => {
                let over = *over;
                self.take_away(made, node, path, over);
            }
            _ => self.leave_directory(made, node, path),
        }
    }
}

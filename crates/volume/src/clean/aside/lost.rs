//! Where the log and the home have come apart, because records were put aside.
//!
//! Promise: a record that is applied finds the names of the home as the log has them.
//! Never: holds anything against a record that comes before what was put aside.

use std::collections::BTreeSet;

use crate::record::{self, Op, Record};
use holdfast_io::tree::NodeId;

/// What is not where the log believes it to be, at one position of the log. What comes before a
/// record does not depend on it, so this is carried from record to record, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost {
    nodes: BTreeSet<NodeId>,
    /// Names that the log has and the home has not.
    paths: BTreeSet<Vec<u8>>,
    /// Names that the home has kept, of what the log has elsewhere or no more.
    kept: BTreeSet<Vec<u8>>,
}

impl Lost {
    /// Whether the next record is passed over: it is aside, or cannot be applied without what is.
    /// Its own names are lost then.
    pub(crate) fn passes_over(&mut self, is_aside: bool, record: &Record<'_>) -> bool {
        let is_lost = is_aside || self.takes(record);
        match is_lost {
            true => self.add(record),
            false => self.follow(record),
        }
        is_lost
    }

    /// Whether the node may be elsewhere than the log has it, or nowhere.
    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
    }

    fn takes(&self, record: &Record<'_>) -> bool {
        let is_lost = |node| self.has(node);
        let is_missed =
            |(node, new)| is_lost(node) || self.is_below(new) || self.kept.contains(new);
        is_lost(record.node)
            || is_lost(record.parent)
            || self.is_below(record.path)
            || new_names(record).any(is_missed)
            || emptied(record).is_some_and(|directory| self.keeps_below(directory))
    }

    /// The record is applied. What is lost below a name that it changes goes along.
    fn follow(&mut self, record: &Record<'_>) {
        match record.op {
            Op::Rename { to, .. } => self.carry(&[(record.path, to)]),
            Op::Exchange { to, .. } => self.carry(&[(record.path, to), (to, record.path)]),
            _ => {}
        }
        for (_, new) in new_names(record) {
            self.paths.remove(new);
        }
    }

    fn carry(&mut self, moves: &[(&[u8], &[u8])]) {
        let carried = |path: &Vec<u8>| {
            let mut moved = moves.iter().filter_map(|(from, to)| {
                let rest = path.strip_prefix(*from).filter(|rest| rest.starts_with(b"/"));
                Some([*to, rest?].concat())
            });
            moved.next().unwrap_or_else(|| path.clone())
        };
        for paths in [&mut self.paths, &mut self.kept] {
            *paths = paths.iter().map(carried).collect();
        }
    }

    fn is_below(&self, path: &[u8]) -> bool {
        let mut slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        slashes.any(|(end, _)| self.paths.contains(&path[..end]))
    }

    fn keeps_below(&self, directory: &[u8]) -> bool {
        let below = [directory, b"/"].concat();
        let next = self.kept.range(below.clone()..).next();
        next.is_some_and(|path| path.starts_with(&below))
    }

    /// The record is not applied: the home keeps the names that would have gone, and does not get
    /// those that would have come.
    fn add(&mut self, record: &Record<'_>) {
        for old in old_names(record) {
            if !self.paths.remove(old) {
                self.kept.insert(old.to_vec());
            }
        }
        for (node, new) in new_names(record) {
            self.nodes.insert(node);
            self.paths.insert(new.to_vec());
        }
    }

    pub(super) fn add_encoded(&mut self, bytes: &[u8]) {
        for (record, _) in record::decode(bytes).flatten() {
            self.add(&record);
        }
    }
}

/// The names that a record makes, and what stands there then.
fn new_names<'a>(record: &Record<'a>) -> impl Iterator<Item = (NodeId, &'a [u8])> {
    let (one, other) = match record.op {
        Op::Make { .. } => (Some((record.node, record.path)), None),
        Op::Link { to } | Op::Rename { to, .. } => (Some((record.node, to)), None),
        Op::Exchange { to, other, .. } => (Some((record.node, to)), Some((other, record.path))),
        _ => (None, None),
    };
    one.into_iter().chain(other)
}

/// The names that a record takes away, or takes from what stands there.
fn old_names<'a>(record: &Record<'a>) -> impl Iterator<Item = &'a [u8]> {
    let (one, other) = match record.op {
        Op::Remove { .. } | Op::RemoveDir => (Some(record.path), None),
        Op::Rename { to, replaced } if replaced.0 != 0 => (Some(record.path), Some(to)),
        Op::Rename { .. } => (Some(record.path), None),
        Op::Exchange { to, .. } => (Some(record.path), Some(to)),
        _ => (None, None),
    };
    one.into_iter().chain(other)
}

/// The directory that must be empty for a record.
fn emptied<'a>(record: &Record<'a>) -> Option<&'a [u8]> {
    match record.op {
        Op::RemoveDir => Some(record.path),
        Op::Rename { to, replaced } if replaced.0 != 0 => Some(to),
        _ => None,
    }
}

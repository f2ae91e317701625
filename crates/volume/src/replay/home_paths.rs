//! Which node the home has under which of its paths, as the ring's records tell.
//!
//! A record names the paths of its moment. The home is as it was before the first record: what was
//! moved since, alone or with a directory above it, stands elsewhere there, and where a path leads
//! today the home may have another. So the tree of names is followed from record to record, as far
//! as records speak of it, and each spot knows where the home has it.
//!
//! Promise: a path of the home is told of the node that stood there before the first record.
//! Never: reads the home, or believes two records about one path of it.

use std::collections::HashMap;

use crate::record::{Op, Record};
use holdfast_io::tree::NodeId;

/// What stands under a name at the moment of a record.
#[derive(Default)]
struct Spot {
    /// Where the home has it; none if it came to be since.
    home: Option<Vec<u8>>,
    /// The names in it that records spoke of; none behind one that nothing has any more.
    below: HashMap<Box<[u8]>, Option<Spot>>,
}

/// The tree of names, as far as records spoke of it.
pub(super) struct HomePaths {
    root: Spot,
    nodes: HashMap<Vec<u8>, NodeId>,
}

impl HomePaths {
    /// The tree before the first record.
    pub(super) fn new() -> HomePaths {
        let root = Spot { home: Some(Vec::new()), ..Spot::default() };
        HomePaths { root, nodes: HashMap::new() }
    }

    /// The nodes that the home has, by its paths.
    pub(super) fn into_nodes(self) -> HashMap<Vec<u8>, NodeId> {
        self.nodes
    }

    /// Follows a record.
    pub(super) fn follow(&mut self, record: &Record<'_>) {
        let path = record.path;
        match record.op {
            Op::Make { .. } => self.put(path, Spot::default()),
            Op::Link { to } => {
                self.tell(path, record.node);
                self.put(to, Spot::default());
            }
            Op::Remove { .. } | Op::RemoveDir => {
                self.tell(path, record.node);
                self.take(path);
            }
            Op::Rename { to, replaced } => {
                self.tell(path, record.node);
                if replaced.0 != 0 {
                    self.tell(to, replaced);
                }
                let moved = self.take(path);
                self.put(to, moved);
            }
            Op::Exchange { to, other, from_parent } => {
                self.tell(path, record.node);
                self.tell(to, other);
                self.tell_above(path, from_parent);
                let (one, two) = (self.take(path), self.take(to));
                self.put(to, one);
                self.put(path, two);
            }
            _ => self.tell(path, record.node),
        }
        self.tell_above(named(record), record.parent);
    }

    /// The node stands under the path now; if the home has it, that is where.
    fn tell(&mut self, path: &[u8], node: NodeId) {
        let home = self.root.at(path).and_then(|spot| spot.home.clone());
        if let Some(home) = home {
            self.nodes.entry(home).or_insert(node);
        }
    }

    /// The directory that a path ends in. Nobody asks for the root.
    fn tell_above(&mut self, path: &[u8], directory: NodeId) {
        if let Some(slash) = path.iter().rposition(|byte| *byte == b'/') {
            self.tell(&path[..slash], directory);
        }
    }

    /// Nothing stands under the path any more. What did?
    fn take(&mut self, path: &[u8]) -> Spot {
        let taken = self.root.at(path).map(std::mem::take);
        self.clear(path);
        taken.unwrap_or_default()
    }

    fn put(&mut self, path: &[u8], spot: Spot) {
        if let Some((directory, name)) = self.root.above(path) {
            directory.below.insert(name.into(), Some(spot));
        }
    }

    fn clear(&mut self, path: &[u8]) {
        if let Some((directory, name)) = self.root.above(path) {
            directory.below.insert(name.into(), None);
        }
    }
}

impl Spot {
    /// What stands under a path below this; none if that has gone.
    fn at(&mut self, path: &[u8]) -> Option<&mut Spot> {
        path.split(|byte| *byte == b'/').try_fold(self, |spot, name| {
            let home = spot.home.as_ref().map(|home| joined(home, name));
            let unmet = || Some(Spot { home, below: HashMap::new() });
            spot.below.entry(name.into()).or_insert_with(unmet).as_mut()
        })
    }

    /// The directory that a path below this ends in, and the last name.
    fn above<'a, 'b>(&'a mut self, path: &'b [u8]) -> Option<(&'a mut Spot, &'b [u8])> {
        match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => Some((self.at(&path[..slash])?, &path[slash + 1..])),
            None => Some((self, path)),
        }
    }
}

/// The path whose directory the record's `parent` is.
fn named<'a>(record: &Record<'a>) -> &'a [u8] {
    match record.op {
        Op::Rename { to, .. } | Op::Exchange { to, .. } | Op::Link { to } => to,
        _ => record.path,
    }
}

fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match directory {
        [] => name.to_vec(),
        _ => [directory, b"/", name].concat(),
    }
}

#[cfg(test)]
mod tests;

//! Which node has which names.
//!
//! Promise: a node keeps its number while it is remembered or open, through renames of itself and
//! of every directory above it; two names of one inode are one node.
//! Never: touches a file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use holdfast_io::OpenFile;
use holdfast_io::tree::{Errno, NodeId, ROOT};

/// A directory and a name in it.
type Place = (NodeId, Vec<u8>);

/// All nodes that somebody remembers or has open.
pub(super) struct Table {
    nodes: HashMap<NodeId, Node>,
    by_inode: HashMap<u64, NodeId>,
    next: u64,
}

/// One node.
pub(super) struct Node {
    inode: u64,
    /// Empty for the root, and for a file that is open and removed.
    names: Vec<Place>,
    remembered: u64,
    /// How many opens were not closed.
    pub(super) opens: u64,
    /// There while `opens` is not zero.
    pub(super) file: Option<Arc<dyn OpenFile>>,
    /// Bytes changed since the last sync.
    pub(super) dirty_bytes: Arc<AtomicU64>,
}

impl Table {
    /// A table that knows the root.
    pub(super) fn new(root_inode: u64) -> Self {
        let mut table = Self { nodes: HashMap::new(), by_inode: HashMap::new(), next: ROOT.0 };
        table.insert(root_inode);
        table
    }

    /// The node, or `ESTALE`.
    pub(super) fn node(&mut self, node: NodeId) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&node).ok_or(Errno::STALE)
    }

    /// A path that leads to the node below the root.
    pub(super) fn path(&self, node: NodeId) -> Result<PathBuf, Errno> {
        let mut names = Vec::new();
        let mut at = node;
        while at != ROOT {
            let found = self.nodes.get(&at).ok_or(Errno::STALE)?;
            let (parent, name) = found.names.first().ok_or(Errno::NOENT)?;
            names.push(name.as_slice());
            at = *parent;
        }
        Ok(names.into_iter().rev().map(OsStr::from_bytes).collect())
    }

    /// The path of a name in a directory.
    pub(super) fn path_of(&self, parent: NodeId, name: &[u8]) -> Result<PathBuf, Errno> {
        Ok(self.path(parent)?.join(Path::new(OsStr::from_bytes(name))))
    }

    /// Notes that a name leads to an inode, and that somebody remembers it.
    pub(super) fn remember(&mut self, parent: NodeId, name: &[u8], inode: u64) -> NodeId {
        let node = self.by_inode.get(&inode).copied();
        let node = node.unwrap_or_else(|| self.insert(inode));
        let found = self.nodes.get_mut(&node).expect("the two maps agree");
        found.remembered += 1;
        let place = (parent, name.to_vec());
        if !found.names.contains(&place) {
            found.names.push(place);
        }
        node
    }

    /// Notes that a name does not lead to an inode any more; `last` if it has no other.
    pub(super) fn unname(&mut self, parent: NodeId, name: &[u8], inode: u64, last: bool) {
        let Some(&node) = self.by_inode.get(&inode) else { return };
        if let Some(found) = self.nodes.get_mut(&node) {
            found.names.retain(|(directory, known)| (*directory, &known[..]) != (parent, name));
        }
        if last {
            // The file system below may give the number to another file at once.
            self.by_inode.remove(&inode);
        }
    }

    /// Notes that a known inode has a name. One that is not known is found when looked up.
    pub(super) fn name(&mut self, parent: NodeId, name: &[u8], inode: u64) {
        let node = self.by_inode.get(&inode).and_then(|node| self.nodes.get_mut(node));
        if let Some(found) = node {
            found.names.push((parent, name.to_vec()));
        }
    }

    /// Takes back remembrances.
    pub(super) fn forget(&mut self, node: NodeId, count: u64) {
        if let Some(found) = self.nodes.get_mut(&node) {
            found.remembered = found.remembered.saturating_sub(count);
        }
        self.drop_unused(node);
    }

    /// Drops a node that nobody remembers or has open.
    pub(super) fn drop_unused(&mut self, node: NodeId) {
        let unused = |found: &Node| found.remembered == 0 && found.opens == 0;
        let Some(found) = self.nodes.get(&node).filter(|found| node != ROOT && unused(found))
        else {
            return;
        };
        if self.by_inode.get(&found.inode) == Some(&node) {
            self.by_inode.remove(&found.inode);
        }
        self.nodes.remove(&node);
    }

    fn insert(&mut self, inode: u64) -> NodeId {
        let node = NodeId(self.next);
        self.next += 1;
        let (names, dirty_bytes) = Default::default();
        let new = Node { inode, names, remembered: 0, opens: 0, file: None, dirty_bytes };
        self.nodes.insert(node, new);
        self.by_inode.insert(inode, node);
        node
    }
}

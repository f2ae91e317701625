//! The steps that a window amounts to, and what becomes of a record in it.
//!
//! Promise: looking at the names of the home tells whether a step is done.
//! Never: looks at them.

use std::collections::{BTreeSet, HashMap};

use holdfast_io::Kind;
use holdfast_io::tree::NodeId;
use holdfast_log::Lsn;

/// One change of names. Each can be repeated: looking at the names tells whether it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The node comes to be under the path, in the directory `parent`, in the place of the node
    /// `over`, or of what an earlier time made of it.
    Make { node: NodeId, parent: NodeId, path: Vec<u8>, make: Make, over: Option<NodeId> },
    /// A second name, in the directory `parent`.
    Link { node: NodeId, parent: NodeId, from: Vec<u8>, to: Vec<u8> },
    /// The name goes, if it is there.
    Remove { node: NodeId, path: Vec<u8> },
    /// The directory goes, if it is there.
    RemoveDir { node: NodeId, path: Vec<u8> },
    /// The name moves into the directory `parent`, unless it has, over the node `replaced`.
    Rename { node: NodeId, replaced: NodeId, parent: NodeId, from: Vec<u8>, to: Vec<u8> },
    /// The node is under one of the names `via`, and nothing else is under another. It moves to
    /// `to`, one of them, in the directory `parent`. Before the window it was under `from`.
    Move { node: NodeId, parent: NodeId, from: Vec<u8>, via: BTreeSet<Vec<u8>>, to: Vec<u8> },
    /// Two names change places, first by the record at `at`, and stand in each other's directory
    /// then; `is_back` if they change back, so that each ends where it was before the window.
    Exchange {
        nodes: [NodeId; 2],
        parents: [NodeId; 2],
        from: Vec<u8>,
        to: Vec<u8>,
        at: Lsn,
        is_back: bool,
    },
    /// The making of the node was put aside. What an earlier try has made of it goes.
    Unmake { node: NodeId, path: Vec<u8>, make: Make },
    /// All names changed so far become durable before the next step.
    Barrier,
    /// A file came to be and went.
    Nothing,
}

impl Step {
    /// The node whose names it changes.
    pub(crate) fn node(&self) -> Option<NodeId> {
        match self {
            Step::Make { node, .. }
            | Step::Link { node, .. }
            | Step::Remove { node, .. }
            | Step::RemoveDir { node, .. }
            | Step::Rename { node, .. }
            | Step::Move { node, .. }
            | Step::Exchange { nodes: [node, _], .. } => Some(*node),
            Step::Unmake { .. } | Step::Barrier | Step::Nothing => None,
        }
    }
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

/// The names that a window gives a node with several.
#[derive(Debug, Default)]
pub(super) struct Linked {
    /// Which step makes it; none if it is from before the window.
    pub(super) made: Option<usize>,
    /// Which steps give it further names, in their order, all from the same.
    pub(super) links: BTreeSet<usize>,
    /// The same steps by the names that they give.
    pub(super) by_name: HashMap<Vec<u8>, usize>,
    /// It is made under another name by now than the steps say that they give theirs from.
    pub(super) is_made_elsewhere: bool,
    /// Each of its names is noted as one of these owners'.
    pub(super) owners: BTreeSet<u32>,
}

/// What becomes of a record in its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pass {
    #[default]
    Applied,
    /// It is aside, because the home refused it.
    Refused,
    /// It cannot be applied without another that is aside. Nobody has tried, unless it is below a
    /// directory that was made before it was refused.
    Depends,
}

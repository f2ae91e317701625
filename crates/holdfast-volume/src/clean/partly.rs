//! Windows that a home may have in part, and be followed all the same.
//!
//! A process that dies in the middle of a window leaves names half changed, and a home without room
//! keeps the next one from finishing it. Most of what programs do tells what becomes of a name
//! whichever part of it is done: what came to be in the window is all in the log, and a file from
//! before is where it was, at one of the names that it was moved to, or nowhere.
//!
//! Promise: a pure function of the records. What is [`Partly::takes`]n can be replayed over any
//! part of it; what a node of before is sought by, then, [`Partly`] tells.
//! Never: takes what moves a file that lives on, or a directory of before: a name below it would
//! lead elsewhere.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::clean::plan::is_orphan;
use crate::record::{Op, Record};
use crate::tree::NodeId;

/// What is to be known of such a window.
#[derive(Default)]
pub(crate) struct Partly {
    made: HashSet<NodeId>,
    /// Names that something came to have, for a while at least.
    given: BTreeSet<Vec<u8>>,
    /// Names that files from before had, which moved elsewhere and live on.
    left: BTreeSet<Vec<u8>>,
    /// Nodes from before with new contents.
    filled: HashSet<NodeId>,
    /// Where nodes from before went, the last place last.
    moved: HashMap<NodeId, Vec<Vec<u8>>>,
}

impl Partly {
    /// Takes in the next record; false if it would not do. `is_directory` tells of a name as the
    /// home has it now.
    pub(crate) fn takes(
        &mut self,
        record: &Record<'_>,
        is_directory: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let (node, path) = (record.node, record.path);
        let is_made = self.made.contains(&node);
        match record.op {
            Op::Make { .. } => {
                self.made.insert(node);
                self.given.insert(path.to_vec());
                !self.left.contains(path)
            }
            Op::Rename { to, replaced } => {
                // What stood there may live on by another name that is not known here.
                let loses = self.filled.contains(&replaced) && !self.moved.contains_key(&replaced);
                let moves = is_made || !is_directory(path) && !is_directory(to);
                self.moves(record, to);
                moves && !loses && !self.left.contains(to)
            }
            Op::Remove { last, .. } => is_made || last,
            Op::RemoveDir => is_made,
            Op::Link { .. } | Op::Exchange { .. } => false,
            _ => {
                self.filled.extend((!is_made).then_some(node));
                true
            }
        }
    }

    fn moves(&mut self, record: &Record<'_>, to: &[u8]) {
        self.given.insert(to.to_vec());
        if self.made.contains(&record.node) {
            return;
        }
        self.moved.entry(record.node).or_default().push(to.to_vec());
        if !is_orphan(to) {
            self.left.insert(record.path.to_vec());
        }
    }

    /// True if what stands under the name may have come there in the window.
    pub(crate) fn gives(&self, path: &[u8]) -> bool {
        self.given.contains(path)
    }

    /// Where a node from before may be if it is not where it was.
    pub(crate) fn moved(&self, node: NodeId) -> &[Vec<u8>] {
        self.moved.get(&node).map_or(&[], Vec::as_slice)
    }
}

//! Names that change places in a window, and back.
//!
//! Promise: two names that change places any number of times are one step, which says whether they
//! end as they were. A repetition tells by their inodes how far an earlier time has come, even if
//! that had another number of times before it.
//! Never: holds for more than the same two names; a third begins a new window.

use holdfast_log::Lsn;

use super::{Step, Window};
use crate::record::{Op, Record};
use holdfast_io::tree::NodeId;

impl Window {
    /// True if the record lets two names change places that did so before in this window, with
    /// nothing else: whatever is done to such a name begins a new one.
    pub(super) fn is_exchanged_again(&self, record: &Record<'_>) -> bool {
        let Op::Exchange { to, .. } = record.op else { return false };
        self.exchanges.contains_key(&pair(record.path, to))
    }

    pub(super) fn exchange(
        &mut self,
        frame: Lsn,
        record: &Record<'_>,
        (to, other, from_parent): (&[u8], NodeId, NodeId),
    ) {
        let from = record.path;
        self.change_places(from, to);
        if let Some(step) = self.exchanges.get(&pair(from, to))
            && let Step::Exchange { is_back, .. } = &mut self.steps[*step]
        {
            *is_back = !*is_back;
            return;
        }
        self.touch(from);
        self.touch(to);
        if self.tells_inodes {
            self.exchanges.insert(pair(from, to), self.steps.len());
        }
        let (nodes, parents) = ([record.node, other], [from_parent, record.parent]);
        let (from, to) = (from.to_vec(), to.to_vec());
        self.steps.push(Step::Exchange { nodes, parents, from, to, at: frame, is_back: false });
    }

    /// What was about either name is about the other now.
    fn change_places(&mut self, from: &[u8], to: &[u8]) {
        let [one, other] = [from, to].map(|path| self.by_path.remove(path));
        for (node, path) in [(one, to), (other, from)] {
            let Some(node) = node else { continue };
            self.by_path.insert(path.to_vec(), node);
            if let Some(contents) = self.contents.get_mut(&node) {
                contents.path = path.to_vec();
            }
        }
    }

    /// The exchanges in the window, by the frames that they first came with.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = Lsn> {
        self.steps.iter().filter_map(|step| match step {
            Step::Exchange { at, .. } => Some(*at),
            _ => None,
        })
    }
}

/// Two names, whichever was said first.
fn pair(one: &[u8], other: &[u8]) -> [Vec<u8>; 2] {
    [one.min(other).to_vec(), one.max(other).to_vec()]
}

//! Records that have been put aside, in the window that they are of.
//!
//! The home refused a part of what they want, and by then it may have had another: a file is made
//! and then gets its owner, and what was made may be from a time before this one. So what is left
//! out of a window is not passed in silence: where it would have been made, it is taken away.
//!
//! Promise: once a window is applied, the home has nothing of a node whose making was put aside,
//! and its name is free for another.
//! Never: takes away what the home had before.

use holdfast_io::Kind;

use super::{Make, Pass, Step, Window};
use crate::record::{Op, Record};

impl Window {
    /// True if the record must not be taken in behind what the window has.
    pub(super) fn begins_anew(&self, record: &Record<'_>, pass: Pass) -> bool {
        let has_step = pass == Pass::Applied || self.undoes(record, pass);
        has_step && self.records > 0 && self.conflicts(record)
    }

    /// True if the record may have made something.
    fn undoes(&self, record: &Record<'_>, pass: Pass) -> bool {
        matches!(record.op, Op::Make { .. })
            && (pass == Pass::Refused || self.unmakes_above(record.path))
    }

    /// True if the directory above the path is taken away.
    fn unmakes_above(&self, path: &[u8]) -> bool {
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let above = slash.and_then(|slash| self.passing_directories.get(&path[..slash]));
        let removal = above.and_then(|passed| self.steps.get(passed.removal?));
        matches!(removal, Some(Step::Unmake { .. }))
    }

    /// Takes in a record that has been put aside: all that is done for it is to undo it.
    pub(super) fn pass_over(&mut self, record: &Record<'_>, pass: Pass) {
        self.nodes.insert(record.node);
        self.passes_over = true;
        let Op::Make { kind, mode, uid, gid, rdev, target } = record.op else { return };
        self.unmade.insert(record.node);
        if !self.undoes(record, pass) {
            return;
        }
        let path = record.path.to_vec();
        self.owners.entry(path.clone()).or_default().insert(uid);
        match kind {
            Kind::Directory => {
                let passed = self.passing_directories.entry(path.clone()).or_default();
                passed.removal = Some(self.steps.len());
            }
            _ => drop(self.passing.insert(path.clone())),
        }
        let make = Make { kind, mode, uid, gid, rdev, target: target.to_vec() };
        self.steps.push(Step::Unmake { node: record.node, path, make });
        self.unmake_above(record.path);
    }

    /// The directories above go behind what was made in them.
    fn unmake_above(&mut self, path: &[u8]) {
        let slashes = path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
        for (slash, _) in slashes {
            let Some(passed) = self.passing_directories.get_mut(&path[..slash]) else { continue };
            let Some(removal) = passed.removal else { continue };
            if let Step::Unmake { .. } = self.steps[removal] {
                passed.removal = Some(self.steps.len());
                let step = std::mem::replace(&mut self.steps[removal], Step::Nothing);
                self.steps.push(step);
            }
        }
    }
}

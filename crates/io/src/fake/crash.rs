//! The disk as it is found after a power cut.
//!
//! Promise: holds everything that was synced, and of the rest what the mood and the seed say.
//! Never: holds a file without the directories above it, or a name without its inode.

use std::collections::BTreeMap;

use super::Random;
use super::contents::History;
use super::inode::Inode;
use super::machine::{Machine, ROOT};
use super::mood::Mood;
use super::names::{Attributes, NameChange};
use crate::Kind;

/// What the platter knows of one inode besides its bytes.
type Found = (BTreeMap<Vec<u8>, u64>, Attributes);

impl Machine {
    /// Any mood, so that a run over many seeds meets them all.
    pub(super) fn any_mood(&self, random: &mut Random) -> Mood {
        match random.below(5) {
            0 => Mood::LoseAll,
            1 => Mood::KeepAll,
            2 => Mood::Prefix(random.below(self.operations() + 1)),
            3 => Mood::Subset,
            _ => Mood::Scatter,
        }
    }

    /// The machine after the power is back: no faults, no open files, nothing unsynced.
    pub(super) fn after_power_cut(&self, mood: Mood, mut random: Random) -> Machine {
        let kept = self.names.after_power_cut(mood, &mut random);
        let found = self.platter(&kept);
        let mut inodes: BTreeMap<u64, Inode> = BTreeMap::new();
        let mut unread = vec![(ROOT, None)];
        while let Some((number, parent)) = unread.pop() {
            if let Some(seen) = inodes.get_mut(&number) {
                seen.add_parent(parent);
                continue;
            }
            let old = &self.inodes[&number];
            let (names, attributes) = found[&number].clone();
            unread.extend(names.values().map(|&child| (child, Some(number))));
            let history = match old.kind {
                Kind::File => self.contents_after_power_cut(old, mood, &mut random),
                _ => old.history.clone(),
            };
            let mut inode = old.found_again(names, attributes, history);
            inode.add_parent(parent);
            inodes.insert(number, inode);
        }
        self.restarted(inodes, random)
    }

    /// The durable names and attributes with the lucky changes laid over them.
    fn platter(&self, kept: &[&NameChange]) -> BTreeMap<u64, Found> {
        let durable =
            |inode: &Inode| (inode.durable_names.clone(), inode.durable_attributes.clone());
        let mut found: BTreeMap<u64, Found> =
            self.inodes.iter().map(|(&number, inode)| (number, durable(inode))).collect();
        for change in kept {
            for edit in &change.edits {
                let (names, _) =
                    found.get_mut(&edit.dir).expect("a pending change pins its inodes");
                match edit.inode {
                    Some(inode) => names.insert(edit.name.clone(), inode),
                    None => names.remove(&edit.name),
                };
            }
            if let Some((inode, attributes)) = &change.attributes {
                found.get_mut(inode).expect("a pending change pins its inodes").1 =
                    attributes.clone();
            }
        }
        found
    }

    fn contents_after_power_cut(&self, old: &Inode, mood: Mood, random: &mut Random) -> History {
        History::at_rest(old.history.after_power_cut(mood, self.sectors, random))
    }
}

//! Changes of names that no directory sync has covered yet.
//!
//! Promise: a change is there whole or not at all; it is there if all directories it touched were
//! synced afterwards, and it is not there if one it builds on is missing.
//! Never: loses the only name of a file through a move, whatever else is lost.

use std::collections::{BTreeMap, BTreeSet};

use super::labels::Xattrs;
use super::{Mood, Random};

/// The part of an inode that is changed together with names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) accessed_ns: i128,
    pub(super) modified_ns: i128,
    pub(super) xattrs: Xattrs,
}

/// One entry of one directory, after a change.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) dir: u64,
    pub(super) name: Vec<u8>,
    pub(super) inode: Option<u64>,
}

/// What one operation did to names, all of it at once.
#[derive(Clone, Debug, Default)]
pub(super) struct NameChange {
    pub(super) edits: Vec<Edit>,
    /// New attributes of an inode.
    pub(super) attributes: Option<(u64, Attributes)>,
    /// Inodes that gained, lost or kept a name by it.
    pub(super) inodes: BTreeSet<u64>,
    /// The directory it made.
    pub(super) made: Option<u64>,
    /// The directory it removed.
    pub(super) removed: Option<u64>,
    /// It moved a directory.
    pub(super) moved_directory: bool,
    /// Directories to be synced before it is durable.
    pub(super) waits_for: BTreeSet<u64>,
}

impl NameChange {
    fn touches(&self, dir: u64) -> bool {
        self.edits.iter().any(|edit| edit.dir == dir)
    }

    fn shares_entry(&self, other: &NameChange) -> bool {
        self.edits
            .iter()
            .any(|one| other.edits.iter().any(|edit| edit.dir == one.dir && edit.name == one.name))
    }

    /// Whether a disk that has this change must have the older one. Moves of directories are all
    /// ordered, because two of them applied in the wrong order can close a circle.
    fn follows(&self, older: &NameChange) -> bool {
        self.shares_entry(older)
            || !self.inodes.is_disjoint(&older.inodes)
            || self.removed.is_some_and(|dir| older.touches(dir))
            || (self.moved_directory && older.moved_directory)
    }

    /// Whether the older one made a directory that this one works in.
    fn is_inside(&self, older: &NameChange) -> bool {
        older.made.is_some_and(|dir| self.touches(dir))
    }
}

/// A change and the older changes it builds on, by the number of their operation.
#[derive(Clone, Debug)]
struct Pending {
    change: NameChange,
    /// Durable with this one at the latest.
    follows: BTreeSet<u64>,
    /// Nothing of this one can be seen without them, and a sync of this one's directory does not
    /// make them durable: their names stand in another directory.
    inside: BTreeSet<u64>,
}

/// All changes of names that may still be lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pending: BTreeMap<u64, Pending>,
}

impl Names {
    /// Remembers what `operation` did.
    pub(super) fn record(&mut self, operation: u64, change: NameChange) {
        let matching = |test: &dyn Fn(&NameChange) -> bool| {
            let older = self.pending.iter().filter(|(_, older)| test(&older.change));
            older.map(|(&number, _)| number).collect()
        };
        let mut follows: BTreeSet<u64> = matching(&|older| change.follows(older));
        let mut inside: BTreeSet<u64> = matching(&|older| change.is_inside(older));
        if change.attributes.is_some() {
            // Syncing a new directory makes its mode durable, and not its name.
            inside.append(&mut follows);
        }
        self.pending.insert(operation, Pending { change, follows, inside });
    }

    /// A directory was synced: hands out what is durable now, oldest first.
    pub(super) fn sync(&mut self, dir: u64) -> Vec<NameChange> {
        let mut forced = Vec::new();
        for pending in self.pending.values_mut() {
            pending.change.waits_for.remove(&dir);
            if pending.change.waits_for.is_empty() {
                forced.extend(pending.follows.iter().copied());
            }
        }
        self.force(forced);
        self.take_durable()
    }

    /// A file was synced, and with it its attributes: hands out what is durable now.
    pub(super) fn sync_attributes(&mut self, inode: u64) -> Vec<NameChange> {
        for pending in self.pending.values_mut() {
            if pending.change.attributes.as_ref().is_some_and(|(number, _)| *number == inode) {
                pending.change.waits_for.clear();
            }
        }
        self.take_durable()
    }

    /// Everything was synced: hands out what is durable now.
    pub(super) fn sync_all(&mut self) -> Vec<NameChange> {
        std::mem::take(&mut self.pending).into_values().map(|pending| pending.change).collect()
    }

    /// Makes changes durable ahead of their own sync, with all they build on.
    fn force(&mut self, mut forced: Vec<u64>) {
        let mut seen = BTreeSet::new();
        while let Some(number) = forced.pop() {
            if !seen.insert(number) {
                continue; // many changes build on one: a chain of renames would take for ever
            }
            if let Some(pending) = self.pending.get_mut(&number) {
                pending.change.waits_for.clear();
                forced.extend(&pending.follows);
                forced.extend(&pending.inside);
            }
        }
    }

    /// One pass is enough, because a change builds on older ones only.
    fn take_durable(&mut self) -> Vec<NameChange> {
        let mut durable = Vec::new();
        for number in self.pending.keys().copied().collect::<Vec<_>>() {
            let pending = &self.pending[&number];
            let mut needs = pending.follows.iter().chain(&pending.inside);
            if !pending.change.waits_for.is_empty() || needs.any(|n| self.pending.contains_key(n)) {
                continue;
            }
            let taken = self.pending.remove(&number).expect("the number was listed above");
            durable.push(taken.change);
        }
        durable
    }

    /// Whether some change that may still be lost speaks of this inode.
    pub(super) fn mentions(&self, inode: u64) -> bool {
        self.pending.values().any(|pending| pending.change.inodes.contains(&inode))
    }

    /// The changes found on the platter when power is gone, oldest first.
    pub(super) fn after_power_cut(&self, mood: Mood, random: &mut Random) -> Vec<&NameChange> {
        let mut lost = BTreeSet::new();
        let mut kept = Vec::new();
        for (&number, pending) in &self.pending {
            let synced = pending.change.waits_for.is_empty();
            let lucky = match mood {
                Mood::LoseAll => false,
                Mood::KeepAll => true,
                Mood::Prefix(last) => number <= last,
                Mood::Subset | Mood::Scatter => random.chance(50),
            };
            let mut needs = pending.follows.iter().chain(&pending.inside);
            if (synced || lucky) && !needs.any(|needed| lost.contains(needed)) {
                kept.push(&pending.change);
            } else {
                lost.insert(number);
            }
        }
        kept
    }
}

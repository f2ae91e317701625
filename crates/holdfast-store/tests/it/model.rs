//! What a program knows of its store.
//!
//! Promise: what is found after a crash is accepted only if it is what some of the commits come to,
//! from the first on without a gap, and each that was acknowledged is among them.
//! Never: asks the store what it should hold.

use std::collections::BTreeMap;

/// The trees that programs under test use.
pub(crate) const TREES: [&str; 3] = ["north", "south", "west"];

/// Keys and values of each tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held(pub(crate) [BTreeMap<Vec<u8>, Vec<u8>>; TREES.len()]);

/// A key of a tree, and its new value, or none if it goes.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) tree: usize,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Option<Vec<u8>>,
}

/// What a program knows of its store.
#[derive(Clone, Default)]
pub(crate) struct Known {
    /// What is there for sure.
    durable: Held,
    /// Commits after that, in their order; each may be there if those before it are.
    doubtful: Vec<Vec<Change>>,
}

impl Held {
    pub(crate) fn make(&mut self, change: &Change) {
        let tree = &mut self.0[change.tree];
        match &change.value {
            Some(value) => drop(tree.insert(change.key.clone(), value.clone())),
            None => drop(tree.remove(&change.key)),
        }
    }
}

impl Known {
    /// What everybody sees while the store is open.
    pub(crate) fn now(&self) -> Held {
        let mut held = self.durable.clone();
        self.doubtful.iter().flatten().for_each(|change| held.make(change));
        held
    }

    /// A transaction with these changes is about to be committed.
    pub(crate) fn commits(&mut self, changes: Vec<Change>) {
        self.doubtful.push(changes);
    }

    /// All commits until now were acknowledged as durable.
    pub(crate) fn acknowledged(&mut self) {
        self.durable = self.now();
        self.doubtful.clear();
    }

    /// The store was opened and holds `found`.
    ///
    /// # Panics
    /// If a commit is missing that was acknowledged, or is there by half, or without one before it.
    pub(crate) fn found(&mut self, found: &Held) {
        let mut doubtful = std::mem::take(&mut self.doubtful).into_iter();
        while self.durable != *found {
            let Some(next) = doubtful.next() else {
                panic!("no sum of commits: {}", difference(&self.durable, found));
            };
            next.iter().for_each(|change| self.durable.make(change));
        }
    }
}

/// The first key that differs, in words.
pub(crate) fn difference(known: &Held, found: &Held) -> String {
    for (tree, (known, found)) in TREES.iter().zip(known.0.iter().zip(&found.0)) {
        let keys = known.keys().chain(found.keys());
        if let Some(key) = keys.min_by_key(|key| (known.get(*key) == found.get(*key), *key)) {
            let length = |value: Option<&Vec<u8>>| value.map(Vec::len);
            if known.get(key) != found.get(key) {
                return format!(
                    "{tree}/{}: a value of {:?} bytes is known, of {:?} found",
                    key.escape_ascii(),
                    length(known.get(key)),
                    length(found.get(key)),
                );
            }
        }
    }
    "nothing differs".into()
}

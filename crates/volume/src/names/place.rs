//! Where a name stands.
//!
//! Promise: the directory by its number, and the name as its bytes.
//! Never: says what stands there.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use holdfast_io::tree::NodeId;

/// The directory of files that have no name any more. Programs cannot see it.
pub(crate) const ORPHANS: NodeId = NodeId(2);

/// A name in a directory.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) parent: NodeId,
    pub(crate) name: Box<[u8]>,
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.parent, &self.name).hash(state);
    }
}

impl Ord for Place {
    /// By name first: a file of the home is looked for by the path that it has there, which tells
    /// its name and not the number of its directory.
    fn cmp(&self, other: &Place) -> Ordering {
        #[cfg(test)]
        COMPARED.set(COMPARED.get() + 1);
        self.name.cmp(&other.name).then(self.parent.cmp(&other.parent))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
thread_local! {
    /// What finding names costs is told by this.
    static COMPARED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// How often this thread has compared two places.
#[cfg(test)]
pub(super) fn compared() -> u64 {
    COMPARED.get()
}

//! The extended attributes of one inode of a fake machine.
//!
//! Promise: they have as much room as those of ext4.
//! Never: knows what an attribute means.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustix::io::Errno;

use super::turn::Outcome;

/// Names and values of one inode; copies share them.
pub(super) type Xattrs = Arc<Labels>;

/// They lie in the inode's body or in a block of their own, whichever has room first, and stay
/// there until they are set again: so what fits depends on the order.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    pub(super) values: BTreeMap<Vec<u8>, Vec<u8>>,
    in_body: BTreeSet<Vec<u8>>,
}

/// What one attribute takes besides its name and value.
pub(crate) const ENTRY_BYTES: usize = 16;

/// What the attributes in the block of an inode may take: 4096 bytes, less its head.
pub(super) const XATTR_BYTES_MAX: usize = 4096 - 32;

/// What those in its body may take.
const BODY_BYTES_MAX: usize = 92;

impl PartialEq for Labels {
    fn eq(&self, other: &Labels) -> bool {
        self.values == other.values
    }
}

impl Eq for Labels {}

impl Labels {
    /// Gives it the value, in a place with room.
    pub(super) fn put(
        &mut self,
        name: &[u8],
        value: Vec<u8>,
        block_bytes_max: usize,
    ) -> Outcome<()> {
        let bytes = ENTRY_BYTES + name.len() + value.len();
        let room = |body: bool| {
            let others = self.values.iter().filter(|(other, _)| {
                other.as_slice() != name && self.in_body.contains(*other) == body
            });
            let taken = others.map(|(other, value)| ENTRY_BYTES + other.len() + value.len());
            let bytes_max = if body { BODY_BYTES_MAX } else { block_bytes_max };
            taken.sum::<usize>() + bytes <= bytes_max
        };
        match (room(true), room(false)) {
            (true, _) => drop(self.in_body.insert(name.to_vec())),
            (false, true) => drop(self.in_body.remove(name)),
            (false, false) => return Err(Errno::NOSPC),
        }
        self.values.insert(name.to_vec(), value);
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> bool {
        self.in_body.remove(name);
        self.values.remove(name).is_some()
    }
}

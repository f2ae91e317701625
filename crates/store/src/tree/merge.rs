//! Neighbours that fit into one node become one, and the page of the other is free.
//!
//! Promise: every key is where it was, seen from above, and so is each gap that somebody has a lock
//! on; after a crash two nodes have become one or have not.
//! Never: waits for a lock; takes latches but from above and from left to right.
//!
//! Whoever has the latches of the one above and of the left neighbour has everybody out of the
//! right one: no other way leads there. So its page can be given to anybody at once.

use holdfast_pages::{PageNumber, Unfit};

use super::put::{By, Change, Said, put};
use super::stop::{Stop, TreeError, corrupt};
use super::{Seek, Tree};
use crate::node::body::Body;
use crate::node::contents::{put_entries, put_image};
use crate::node::large::Stored;
use crate::node::{NODE_BYTES, Node, SLOT_BYTES, Shape};
use crate::pool::{Below, WriteLatch};

/// Two nodes become one only if that one has at most so many bytes: a quarter is left, so that the
/// next keys do not split it again.
const MERGED_BYTES_MAX: usize = NODE_BYTES / 4 * 3;
/// A node is sparse that has at most so many bytes: two such neighbours fit into one.
const SPARSE_BYTES_MAX: usize = NODE_BYTES / 8 * 3;
/// It is looked at again whenever so many more have gone.
const THINNER_BYTES: usize = NODE_BYTES / 8;

/// What came of a look at a node and its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merge {
    /// Two nodes of its level have become one.
    Done,
    /// The root has what its only child had.
    Shrunk,
    /// They do not fit, or it has none. True if the one above has too few children itself.
    Apart(bool),
    /// Somebody has a lock on the gap that begins where the right one does.
    Locked,
}

/// Whether a node has so little that it may fit into another one.
pub(super) fn is_sparse(node: Node<'_>) -> bool {
    NODE_BYTES - node.room() <= SPARSE_BYTES_MAX
}

/// Whether a node has become so much thinner that it is worth a look. `room` is what it had.
pub(super) fn is_thinner(room: usize, node: Node<'_>) -> bool {
    let steps = |room: usize| room / THINNER_BYTES;
    let is_less = steps(node.room()) > steps(room) || (node.count() == 0 && node.room() > room);
    is_less && is_sparse(node)
}

impl<B: Below> Tree<'_, B> {
    /// Merges the leaf of a key with its neighbours as long as they fit into one, and then the
    /// nodes above. `is_free` says under latches of a key whether nobody has a lock on it. Returns
    /// how many pages became free, and whether all is as close together as it can be.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(super) fn draw_together(
        &self,
        key: &[u8],
        is_free: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<(usize, bool), TreeError<B::Error>> {
        let (mut level, mut count, mut merged_here, mut is_all) = (0, 0, false, true);
        loop {
            let merge = self.again(|| self.merge(key, level, is_free))?;
            count += usize::from(matches!(merge, Merge::Done | Merge::Shrunk));
            is_all &= merge != Merge::Locked;
            match merge {
                Merge::Done => merged_here = true,
                Merge::Shrunk => level = level.saturating_sub(1),
                Merge::Apart(is_above_sparse) if merged_here || is_above_sparse => {
                    (level, merged_here) = (level + 1, false);
                }
                Merge::Apart(_) | Merge::Locked => return Ok((count, is_all)),
            }
        }
    }

    /// Takes all out of the leaf of a key of a tree that nobody uses, and merges it. Returns where
    /// that leaf ended, if it was not the last.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn clear_leaf(&self, key: &[u8]) -> Result<Option<Vec<u8>>, TreeError<B::Error>> {
        let (large, end) = self.again(|| {
            let mut leaf = self.descend(Seek::At(key), 0, true)?.0.exclusive();
            let node = self.node(&leaf)?;
            let large = node.entries().filter_map(|entry| Stored::large_of(entry.value));
            let (large, end) = (large.collect::<Vec<_>>(), node.shape().end().map(<[u8]>::to_vec));
            if node.count() > 0 {
                let (number, mut body) = (leaf.number(), Vec::new());
                Body::Clear.put(&mut body);
                let said = Said::Body(By::System, &body);
                put(self.stream, &mut [Change { page: &mut leaf, number, said: &[said] }])?;
            }
            Ok((large, end))
        })?;
        large.into_iter().try_for_each(|large| self.free(large))?;
        self.draw_together(key, &mut |_| true)?;
        Ok(end)
    }

    /// Merges the node of this level where `key` is with one of its neighbours.
    fn merge(
        &self,
        key: &[u8],
        level: u8,
        is_free: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<Merge, Stop<B::Error>> {
        let Some(mut parent) = self.parent(key, level)? else { return Ok(Merge::Apart(false)) };
        let node = self.node(&parent)?;
        let place = Seek::At(key).child_place(node).map_err(|why| corrupt(&parent, why))?;
        let (is_only, is_root) = (node.count() == 1, parent.number() == self.root);
        if is_only && is_root && self.shrink(&mut parent)? {
            return Ok(Merge::Shrunk);
        }
        let mut merge = Merge::Apart(is_only);
        for left in [Some(place), place.checked_sub(1)].into_iter().flatten() {
            match self.merge_behind(&mut parent, left, is_free)? {
                Merge::Apart(_) => {}
                Merge::Locked => merge = Merge::Locked,
                done => return Ok(done),
            }
        }
        Ok(merge)
    }

    /// Merges the child at a place with the one behind it, or with its own foster child.
    fn merge_behind(
        &self,
        parent: &mut WriteLatch<'_>,
        place: usize,
        is_free: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<Merge, Stop<B::Error>> {
        let above = self.node(parent)?;
        let child = |place| above.child(place).map_err(|why| corrupt(parent, why));
        let mut left = self.pool.write(child(place)?)?;
        let one = self.node(&left)?;
        let foster = one.shape().foster.map(|foster| foster.page);
        let number = match foster {
            Some(page) => page,
            None if place + 1 < above.count() => child(place + 1)?,
            None => return Ok(Merge::Apart(false)),
        };
        if NODE_BYTES - one.room() > MERGED_BYTES_MAX {
            return Ok(Merge::Apart(false));
        }
        let right = self.pool.write(number)?;
        let other = self.node(&right)?;
        if other.level() != one.level() || one.shape().end() != Some(other.shape().low) {
            return Err(corrupt(&right, Unfit("not what its neighbours say")));
        }
        if !fit(one, other) {
            return Ok(Merge::Apart(false));
        }
        let low = other.shape().low;
        if one.level() == 0 && !other.is_at(0, low) && !is_free(low) {
            return Ok(Merge::Locked);
        }
        let place = foster.is_none().then_some(place + 1);
        self.join(parent, place, &mut left, (number, right))?;
        Ok(Merge::Done)
    }

    /// Gives all that the right one has to the left one. The right one is the parent's at `place`,
    /// or else the left one's foster child.
    fn join(
        &self,
        parent: &mut WriteLatch<'_>,
        place: Option<usize>,
        left: &mut WriteLatch<'_>,
        (number, mut right): (PageNumber, WriteLatch<'_>),
    ) -> Result<(), Stop<B::Error>> {
        let (mut above, mut below, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        let node = self.node(&right)?;
        let Shape { high, foster, .. } = node.shape();
        put_entries(node.entries(), &mut entries);
        Body::Absorb { high, foster, entries: &entries }.put(&mut below);
        let disown = place.map(|place| Body::Disown { place, page: number });
        disown.iter().for_each(|body| body.put(&mut above));
        let (at, left_number) = (parent.number(), left.number());
        let below = [Said::Body(By::System, &below)];
        let above = [Said::Body(By::System, &above)];
        let mut changes = vec![
            Change { page: left, number: left_number, said: &below },
            Change { page: &mut right, number, said: &[Said::Free] },
        ];
        if place.is_some() {
            changes.push(Change { page: parent, number: at, said: &above });
        }
        put(self.stream, &mut changes)?;
        drop(right);
        self.numbers.give_back_merged(number);
        Ok(())
    }

    /// Gives the root what its only child has, unless that has a foster child.
    fn shrink(&self, root: &mut WriteLatch<'_>) -> Result<bool, Stop<B::Error>> {
        let number = self.node(root)?.child(0).map_err(|why| corrupt(root, why))?;
        let mut child = self.pool.write(number)?;
        let node = self.node(&child)?;
        if node.shape().foster.is_some() {
            return Ok(false);
        }
        let mut image = Vec::new();
        put_image(self.root, &node.shape(), node.entries(), &mut image);
        put(
            self.stream,
            &mut [
                Change { page: root, number: self.root, said: &[Said::Image(&image)] },
                Change { page: &mut child, number, said: &[Said::Free] },
            ],
        )?;
        drop(child);
        self.numbers.give_back_merged(number);
        Ok(true)
    }
}

/// Whether all that two neighbours have fits into one, with room to spare.
fn fit(left: Node<'_>, right: Node<'_>) -> bool {
    let Shape { high, foster, .. } = right.shape();
    let shape = Shape { high, foster, ..left.shape() };
    let prefix = shape.prefix().len();
    let bytes = |node: Node<'_>| -> usize {
        let longer = node.prefix().len() - prefix;
        node.entries().map(|entry| SLOT_BYTES + longer + entry.heap_bytes()).sum()
    };
    shape.bytes() + bytes(left) + bytes(right) <= MERGED_BYTES_MAX
}

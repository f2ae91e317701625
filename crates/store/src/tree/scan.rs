//! Leaf by leaf through a tree, upwards or downwards.
//!
//! Promise: whoever goes on where a leaf ended misses no key and meets none twice, whatever becomes
//! of the leaves meanwhile; each key, and the gap behind it, is shown under its leaf's latch, so
//! who gets a lock on it there knows that it is what was shown.
//! Never: waits for a lock, or keeps a latch from one leaf to the next.

use holdfast_pages::Page;

use super::seek::before;
use super::stop::TreeError;
use super::{Seek, Tree};
use crate::node::Node;
use crate::pool::Below;

/// What a scan meets, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen<'a> {
    /// A key, and the gap behind it.
    Key {
        /// The key.
        key: &'a [u8],
        /// Its value; the last one that it had if it is a ghost.
        value: &'a [u8],
        /// Whether it is deleted.
        ghost: bool,
    },
    /// The gap behind this key alone, which is not one that was asked for, or behind the low fence
    /// of the leaf.
    Gap(&'a [u8]),
}

/// Where a scan of one leaf ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeafEnd {
    /// All of the leaf was shown. Upwards the scan goes on at [`Seek::At`] this key, downwards at
    /// [`Seek::Below`] it.
    Next(Vec<u8>),
    /// There is nothing more.
    Last,
    /// The caller stopped it.
    Stopped,
}

impl<B: Below> Tree<'_, B> {
    /// Shows what one leaf has from where `from` says: from [`Seek::At`] upwards, in which case the
    /// gap before the first key comes first, unless that is the key asked for; otherwise downwards,
    /// the gap before the lowest key last. Stops before what `each` answers false to: the caller
    /// has not got its lock, or has seen enough.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn leaf(
        &self,
        from: Seek<'_>,
        each: impl FnMut(Seen<'_>) -> bool,
    ) -> Result<LeafEnd, TreeError<B::Error>> {
        self.leaf_from(from, |_| (), each)
    }

    /// The same. `look` sees the leaf first.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(super) fn leaf_from(
        &self,
        from: Seek<'_>,
        mut look: impl FnMut(&Page),
        mut each: impl FnMut(Seen<'_>) -> bool,
    ) -> Result<LeafEnd, TreeError<B::Error>> {
        if from == Seek::Below(b"") {
            return Ok(LeafEnd::Last);
        }
        self.again(|| {
            let (leaf, _) = self.descend(from, 0, false)?;
            let node = self.node(&leaf)?;
            look(&leaf);
            let shown = match from {
                Seek::At(key) => upwards(node, key, &mut each),
                Seek::Below(_) | Seek::End => downwards(node, from, &mut each),
            };
            if node.entries().all(|entry| entry.ghost) && leaf.number() != self.root {
                self.numbers.note_untidy(self.root, node.shape().low);
            }
            if !shown {
                return Ok(LeafEnd::Stopped);
            }
            let (shape, up) = (node.shape(), matches!(from, Seek::At(_)));
            let next = if up { shape.end() } else { Some(shape.low).filter(|low| !low.is_empty()) };
            Ok(next.map_or(LeafEnd::Last, |next| LeafEnd::Next(next.to_vec())))
        })
    }
}

/// Shows the gap before a key, if it is in one, and everything from there on. Returns whether all
/// of it was shown.
fn upwards(node: Node<'_>, from: &[u8], each: &mut impl FnMut(Seen<'_>) -> bool) -> bool {
    let first = match node.find(from) {
        Ok(place) => place,
        Err(place) => {
            if !each(Seen::Gap(&before(node, place))) {
                return false;
            }
            place
        }
    };
    let mut key = Vec::new();
    (first..node.count()).all(|place| show(node, place, &mut key, each))
}

/// Shows everything below, and the gap behind the low fence if no key is there. Returns whether all
/// of it was shown.
fn downwards(node: Node<'_>, from: Seek<'_>, each: &mut impl FnMut(Seen<'_>) -> bool) -> bool {
    let (mut key, low) = (Vec::new(), node.shape().low);
    (0..from.count_in(node)).rev().all(|place| show(node, place, &mut key, each))
        && (node.is_at(0, low) || each(Seen::Gap(low)))
}

fn show(
    node: Node<'_>,
    place: usize,
    key: &mut Vec<u8>,
    each: &mut impl FnMut(Seen<'_>) -> bool,
) -> bool {
    let entry = node.entry(place);
    key.clear();
    key.extend_from_slice(node.prefix());
    key.extend_from_slice(entry.suffix);
    each(Seen::Key { key, value: entry.value, ghost: entry.ghost })
}

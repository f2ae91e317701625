//! Which way leads to a key, seen from one node.
//!
//! Promise: a node says where to go on, or that it cannot: what it covers is checked before.
//! Never: looks into another page.

use holdfast_pages::{PageNumber, Unfit};

use crate::node::{Node, Shape};

/// What is looked for in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seek<'k> {
    /// The leaf that has this key or would have it.
    At(&'k [u8]),
    /// The leaf that has, or would have, the last key below this one, which is not empty.
    Below(&'k [u8]),
    /// The last leaf.
    End,
}

/// Where to go from a node.
pub(super) enum Step {
    Here,
    Child(PageNumber, usize),
    Foster(PageNumber),
}

impl Seek<'_> {
    /// Whether it lies behind everything below `key`.
    fn is_behind(&self, key: &[u8]) -> bool {
        match *self {
            Seek::At(wanted) => key <= wanted,
            Seek::Below(wanted) => key < wanted,
            Seek::End => true,
        }
    }

    /// Whether a node of this shape has it, its foster child left out.
    fn is_in(&self, shape: &Shape<'_>) -> bool {
        self.is_behind(shape.low) && shape.end().is_none_or(|end| !self.is_behind(end))
    }

    /// How many entries of a node are below or at it.
    pub(super) fn count_in(&self, node: Node<'_>) -> usize {
        match *self {
            Seek::At(key) => node.find(key).map_or_else(|above| above, |place| place + 1),
            Seek::Below(key) => node.find(key).unwrap_or_else(|above| above),
            Seek::End => node.count(),
        }
    }

    /// Where to go from a node on the way to one of this level.
    pub(super) fn step(&self, node: Node<'_>, level: u8) -> Result<Step, Unfit> {
        let shape = node.shape();
        if let Some(foster) = shape.foster.filter(|foster| self.is_behind(foster.key)) {
            return Ok(Step::Foster(foster.page));
        }
        if shape.level <= level {
            let here = shape.level == level && self.is_in(&shape);
            return if here {
                Ok(Step::Here)
            } else {
                Err(Unfit("the key is not where it belongs"))
            };
        }
        let place = self.child_place(node)?;
        Ok(Step::Child(node.child(place)?, place))
    }

    /// The place of the child that leads there.
    pub(super) fn child_place(&self, node: Node<'_>) -> Result<usize, Unfit> {
        self.count_in(node).checked_sub(1).ok_or(Unfit("no child has the key"))
    }
}

/// The key before a place, or the low fence.
pub(crate) fn before(node: Node<'_>, place: usize) -> Vec<u8> {
    place.checked_sub(1).map_or_else(|| node.shape().low.to_vec(), |place| node.key(place))
}

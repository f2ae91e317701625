//! A node that is too full becomes two, and a root that is gets children.
//!
//! Promise: no key is anywhere else but where it was, seen from above; after a crash a split has
//! happened or has not.
//! Never: changes a parent.

use holdfast_pages::{PageNumber, StageError, Unfit};

use super::Tree;
use super::put::{By, Change, Said, put};
use super::stop::{Stop, corrupt};
use crate::node::body::Body;
use crate::node::contents::put_image;
use crate::node::node_change::child_value;
use crate::node::{Entry, Foster, NODE_BYTES, Node, SLOT_BYTES, Shape};
use crate::pool::{Below, WriteLatch};

impl<'a, B: Below> Tree<'a, B> {
    /// Makes room where `key` belongs: the node splits, or grows if it is the root.
    pub(super) fn make_room(
        &self,
        full: &mut WriteLatch<'_>,
        key: &[u8],
    ) -> Result<(), Stop<B::Error>> {
        if full.number() == self.root { self.grow(full) } else { self.split(full, key) }
    }

    /// Gives the upper part of a node to a foster child.
    fn split(&self, full: &mut WriteLatch<'_>, key: &[u8]) -> Result<(), Stop<B::Error>> {
        let node = self.node(full)?;
        let place = split_place(node, key);
        let place = place.ok_or_else(|| corrupt(full, Unfit("too full, with too few entries")))?;
        let (number, mut right) = self.begin()?;
        let (image, body) = halves(self.root, node, place, number);
        let left = full.number();
        let done = put(
            self.stream,
            &mut [
                Change { page: &mut right, number, said: &[Said::Begin(&image)] },
                Change { page: full, number: left, said: &[Said::Body(By::System, &body)] },
            ],
        );
        done.map(drop).map_err(|error| self.take_back(number, right, error))
    }

    /// Gives all that the root has to a child, and makes that its only one.
    pub(super) fn grow(&self, root: &mut WriteLatch<'_>) -> Result<(), Stop<B::Error>> {
        let (number, mut child) = self.begin()?;
        let node = self.node(root)?;
        let (mut below, mut above) = (Vec::new(), Vec::new());
        put_image(self.root, &node.shape(), node.entries(), &mut below);
        let shape = Shape { level: node.level() + 1, foster: None, ..node.shape() };
        let value = child_value(number);
        let only = Entry { suffix: b"", value: &value, ghost: false };
        put_image(self.root, &shape, std::iter::once(only), &mut above);
        let done = put(
            self.stream,
            &mut [
                Change { page: &mut child, number, said: &[Said::Begin(&below)] },
                Change { page: root, number: self.root, said: &[Said::Image(&above)] },
            ],
        );
        done.map(drop).map_err(|error| self.take_back(number, child, error))
    }

    /// A page that is to begin.
    pub(super) fn begin(&self) -> Result<(PageNumber, WriteLatch<'a>), Stop<B::Error>> {
        let number = self.numbers.take();
        match self.pool.make(number) {
            Ok(page) => Ok((number, page)),
            Err(error) => {
                self.numbers.give_back(number);
                Err(error.into())
            }
        }
    }

    /// Lets go of a page that has not begun after all.
    pub(super) fn take_back(
        &self,
        number: PageNumber,
        page: WriteLatch<'_>,
        error: StageError,
    ) -> Stop<B::Error> {
        self.pool.forget(page);
        self.numbers.give_back(number);
        error.into()
    }
}

/// What is said of a node of this tree that gives its entries from a place on to the page of this
/// number: an image of that one, and a body for its own.
pub(super) fn halves(
    tree: PageNumber,
    node: Node<'_>,
    place: usize,
    number: PageNumber,
) -> (Vec<u8>, Vec<u8>) {
    let (separator, mut image, mut body) = (node.key(place), Vec::new(), Vec::new());
    let shape = Shape { low: &separator, ..node.shape() };
    let longer = shape.prefix().len() - node.prefix().len();
    let entries = node.entries().skip(place);
    let entries = entries.map(|entry| Entry { suffix: &entry.suffix[longer..], ..entry });
    put_image(tree, &shape, entries, &mut image);
    Body::Split { place, page: number, key: &separator }.put(&mut body);
    (image, body)
}

/// Which entry is the first to go. Whoever adds keys at the end of the tree fills its nodes;
/// otherwise both have half of the bytes.
pub(super) fn split_place(node: Node<'_>, key: &[u8]) -> Option<usize> {
    let last = node.count().checked_sub(1).filter(|last| *last > 0)?;
    let at_the_end = node.shape().high.is_none() && node.find(key) == Err(node.count());
    if at_the_end && left_fits(node, last) {
        return Some(last);
    }
    let mut bytes =
        node.entries().map(|entry| SLOT_BYTES + entry.heap_bytes()).scan(0, |sum, it| {
            *sum += it;
            Some(*sum)
        });
    let half = bytes.clone().last()? / 2;
    let middle = bytes.position(|sum| sum >= half)?;
    Some(middle.clamp(1, last))
}

/// Whether the entries below a place fit into the node with the key there for a foster key.
fn left_fits(node: Node<'_>, place: usize) -> bool {
    let key = node.key(place);
    let shape =
        Shape { foster: Some(Foster { key: &key, page: PageNumber::NONE }), ..node.shape() };
    let entries = node.entries().take(place);
    let bytes: usize = entries.map(|entry| SLOT_BYTES + entry.heap_bytes()).sum();
    shape.bytes() + bytes <= NODE_BYTES
}

//! Where bodies and images meet pages of trees.
//!
//! Byte table of images: FORMAT.md, "Image".
//!
//! Promise: a page that was a node before is one after, or the body did not fit and is told so; the
//! same node and the same body give the same bytes; an image holds all that a node does, and not
//! where it lies.
//! Never: asks whether a change is wise.

use holdfast_pages::{Contents, Page, PageKind, PageNumber, Unfit, varint};

use crate::node::body::{Body, Spot};
use crate::node::fields::{
    byte, bytes, cut, fence as take_fence, number as take_number, page as page_in, put_bytes,
    put_fence, size,
};
use crate::node::large::Part;
use crate::node::node_change::{NodeMut, build, child_value};
use crate::node::{Entry, Foster, Node, Shape};

const LEAF: u8 = 1;
const INNER: u8 = 2;
const LARGE: u8 = 3;

/// What the pages of a store hold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeContents;

impl Contents for NodeContents {
    fn apply(&self, page: &mut Page, body: &[u8]) -> Result<(), Unfit> {
        let (tree, body) = (page.tree(), Body::parse(body)?);
        let mut node = NodeMut::of(page)?;
        if let Some(spot) = body.spot() {
            if spot.tree != tree || node.node().level() > 0 {
                return Err(Unfit("the page is no leaf of this tree"));
            }
            if !matches!(body, Body::Insert { .. }) && !node.node().is_at(spot.place, spot.key) {
                return Err(Unfit("the key is not at its place"));
            }
        }
        change(&mut node, body)
    }

    fn image(&self, page: &Page, into: &mut Vec<u8>) {
        if let Ok(part) = Part::of(page, page.tree()) {
            return put_large_image(page.tree(), part, into);
        }
        let node = Node::of(page).expect("images are made of nodes and of large values");
        put_image(page.tree(), &node.shape(), node.entries(), into);
    }

    fn restore(&self, page: &mut Page, number: PageNumber, image: &[u8]) -> Result<(), Unfit> {
        let mut rest = image;
        let kind = match byte(&mut rest)? {
            LEAF => PageKind::Leaf,
            INNER => PageKind::Inner,
            LARGE => PageKind::Large,
            _ => return Err(Unfit("no image begins so")),
        };
        let tree = page_in(&mut rest)?;
        if u32::try_from(tree.get()).is_err() {
            return Err(Unfit("no root lies there"));
        }
        page.begin(number, kind, tree);
        if kind == PageKind::Large {
            let next = PageNumber(take_number(&mut rest)?);
            return Part { next, bytes: rest }.fill(page.contents_mut());
        }
        restore_node(page, &mut rest)
    }
}

/// Does what the body says, which is about this node.
fn change(node: &mut NodeMut<'_>, body: Body<'_>) -> Result<(), Unfit> {
    match body {
        Body::Insert { spot, value } => node.insert(spot.place, spot.key, value),
        Body::Replace { spot, at, old, new } => node.splice(spot.place, at, old, new),
        Body::Ghost(Spot { place, .. }) => node.set_ghost(place, true),
        Body::Unghost(Spot { place, .. }) => node.set_ghost(place, false),
        Body::Revive { spot, old, new } => {
            if node.node().entry(spot.place).value != old {
                return Err(Unfit("the value was another one"));
            }
            node.set_ghost(spot.place, false)?;
            node.set_value(spot.place, new)
        }
        Body::Unrevive { spot, old } => {
            node.set_ghost(spot.place, true)?;
            node.set_value(spot.place, old)
        }
        Body::Renew { spot, at, cut, new } => node.renew(spot.place, at, cut, new),
        Body::Split { place, page, key } => node.split(place, Foster { key, page }),
        Body::AdoptParent { place, page, key } => {
            if node.node().level() == 0 {
                return Err(Unfit("a leaf has no children"));
            }
            node.insert(place, key, &child_value(page))
        }
        Body::AdoptChild => node.let_foster_go(),
        Body::Purge { places } => node.purge(&list(places)?),
        Body::Absorb { high, foster, mut entries } => {
            node.absorb(high, foster, &take_entries(&mut entries)?)
        }
        Body::Disown { place, page } => node.disown(place, page),
        Body::Clear => node.clear(),
    }
}

fn list(mut places: &[u8]) -> Result<Vec<usize>, Unfit> {
    let mut list = Vec::new();
    while !places.is_empty() {
        list.push(size(&mut places)?);
    }
    Ok(list)
}

/// Appends the image of a page of this tree that is a node of this shape with these entries. Their
/// keys are what lies behind the prefix of `shape`.
pub(crate) fn put_image<'e>(
    tree: PageNumber,
    shape: &Shape<'_>,
    entries: impl Iterator<Item = Entry<'e>>,
    into: &mut Vec<u8>,
) {
    into.push(if shape.level == 0 { LEAF } else { INNER });
    varint::put(tree.get(), into);
    into.push(shape.level);
    put_bytes(shape.low, into);
    put_fence(shape.high, into);
    put_fence(shape.foster.map(|foster| foster.key), into);
    if let Some(foster) = shape.foster {
        varint::put(foster.page.get(), into);
    }
    put_entries(entries, into);
}

/// Appends the image of a page of this tree that is this part of a large value.
pub(crate) fn put_large_image(tree: PageNumber, part: Part<'_>, into: &mut Vec<u8>) {
    into.push(LARGE);
    varint::put(tree.get(), into);
    varint::put(part.next.get(), into);
    into.extend_from_slice(part.bytes);
}

/// Makes the page, which has begun, the node that the image says.
fn restore_node(page: &mut Page, rest: &mut &[u8]) -> Result<(), Unfit> {
    let (level, low, high) = (byte(rest)?, bytes(rest)?, take_fence(rest)?);
    let foster = match take_fence(rest)? {
        Some(key) => Some(Foster { key, page: page_in(rest)? }),
        None => None,
    };
    if (level == 0) != (page.kind() == Some(PageKind::Leaf)) {
        return Err(Unfit("leaves are of level 0, and no other node is"));
    }
    let entries = take_entries(rest)?;
    build(page.contents_mut(), &Shape { level, low, high, foster }, entries.into_iter())
}

/// Appends entries as an image says them.
pub(crate) fn put_entries<'e>(entries: impl Iterator<Item = Entry<'e>>, into: &mut Vec<u8>) {
    for entry in entries {
        varint::put((entry.suffix.len() as u64) << 1 | u64::from(entry.ghost), into);
        into.extend_from_slice(entry.suffix);
        put_bytes(entry.value, into);
    }
}

fn take_entries<'a>(rest: &mut &'a [u8]) -> Result<Vec<Entry<'a>>, Unfit> {
    let mut entries = Vec::new();
    while !rest.is_empty() {
        entries.push(take_entry(rest)?);
    }
    Ok(entries)
}

fn take_entry<'a>(rest: &mut &'a [u8]) -> Result<Entry<'a>, Unfit> {
    let head = size(rest)?;
    let suffix = cut(rest, head >> 1)?;
    Ok(Entry { suffix, value: bytes(rest)?, ghost: head & 1 == 1 })
}

#[cfg(test)]
mod tests;

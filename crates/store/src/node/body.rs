//! One change of a page of a tree, as bytes and back.
//!
//! Byte table: FORMAT.md, "Body".
//!
//! Promise: a body has one encoding, and what was encoded is what is parsed; anything else is
//! `Unfit`, never a panic.
//! Never: knows the page.
//!
//! A body says which entry it is about by its place *and* by its key: whoever applies it goes to
//! the place and finds the key there; whoever undoes it looks for the key, wherever it is by then.

use holdfast_pages::{PageNumber, Unfit, varint};

use crate::node::fields::{byte, bytes, fence, page, put_bytes, put_fence, size};
use crate::node::{Foster, KEY_BYTES_MAX, VALUE_BYTES_MAX};

const INSERT: u8 = 1;
const REPLACE: u8 = 2;
const GHOST: u8 = 3;
const UNGHOST: u8 = 4;
const REVIVE: u8 = 5;
const UNREVIVE: u8 = 6;
const RENEW: u8 = 7;
const SPLIT: u8 = 16;
const ADOPT_PARENT: u8 = 17;
const ADOPT_CHILD: u8 = 18;
const PURGE: u8 = 19;
const ABSORB: u8 = 20;
const DISOWN: u8 = 21;
const CLEAR: u8 = 22;

/// No body of a change of a leaf is longer than this.
pub(crate) const BODY_BYTES_MAX: usize =
    1 + 4 * varint::BYTES_MAX + KEY_BYTES_MAX + varint::BYTES_MAX + 2 * VALUE_BYTES_MAX;

/// An entry of a leaf, and the tree that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot<'a> {
    /// The root of the tree.
    pub tree: PageNumber,
    /// Where in the leaf the entry is, or comes.
    pub place: usize,
    /// Its key.
    pub key: &'a [u8],
}

/// What happens to a page of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body<'a> {
    /// A key comes, with its value.
    Insert {
        /// Where.
        spot: Spot<'a>,
        /// The value.
        value: &'a [u8],
    },
    /// A part of a value becomes another one.
    Replace {
        /// Where.
        spot: Spot<'a>,
        /// From which byte of the value on.
        at: usize,
        /// The bytes that go.
        old: &'a [u8],
        /// The bytes that come.
        new: &'a [u8],
    },
    /// A key is deleted; its entry stays as a ghost, with its value.
    Ghost(Spot<'a>),
    /// A ghost is an entry again, as it was.
    Unghost(Spot<'a>),
    /// A ghost is an entry again, with another value.
    Revive {
        /// Where.
        spot: Spot<'a>,
        /// The value that goes.
        old: &'a [u8],
        /// The value that comes.
        new: &'a [u8],
    },
    /// An entry is a ghost again, with the value that it had.
    Unrevive {
        /// Where.
        spot: Spot<'a>,
        /// The value that comes.
        old: &'a [u8],
    },
    /// What is there is an entry, or is one again, and a part of its value becomes another one.
    /// What it was before is not told: nobody undoes it.
    Renew {
        /// Where.
        spot: Spot<'a>,
        /// From which byte of the value on.
        at: usize,
        /// How many bytes go.
        cut: usize,
        /// The bytes that come.
        new: &'a [u8],
    },
    /// Everything from a place on is in a foster child now.
    Split {
        /// The first entry that is.
        place: usize,
        /// The foster child.
        page: PageNumber,
        /// The key of that entry.
        key: &'a [u8],
    },
    /// An inner node has a foster child of one of its children for a child of its own.
    AdoptParent {
        /// Where the entry comes.
        place: usize,
        /// The child.
        page: PageNumber,
        /// The first key that belongs to it.
        key: &'a [u8],
    },
    /// The foster child is the parent's now.
    AdoptChild,
    /// Ghosts go.
    Purge {
        /// Where they are, ascending, each as a varint.
        places: &'a [u8],
    },
    /// The node has all that its right neighbour had, and ends where that did.
    Absorb {
        /// Where it ends.
        high: Option<&'a [u8]>,
        /// The foster child that the neighbour had.
        foster: Option<Foster<'a>>,
        /// What the neighbour held, as in an image of it.
        entries: &'a [u8],
    },
    /// An inner node has one child less: the one before has absorbed it.
    Disown {
        /// Where the entry is.
        place: usize,
        /// The child.
        page: PageNumber,
    },
    /// A leaf has no entries any more.
    Clear,
}

impl<'a> Body<'a> {
    /// Appends the body as bytes.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Body::Insert { spot, value } => spot.put(INSERT, value, out),
            Body::Replace { spot, at, old, new } => {
                spot.put_counted(REPLACE, out);
                varint::put(at as u64, out);
                put_bytes(old, out);
                out.extend_from_slice(new);
            }
            Body::Ghost(spot) => spot.put(GHOST, &[], out),
            Body::Unghost(spot) => spot.put(UNGHOST, &[], out),
            Body::Revive { spot, old, new } => {
                spot.put_counted(REVIVE, out);
                put_bytes(old, out);
                out.extend_from_slice(new);
            }
            Body::Unrevive { spot, old } => spot.put(UNREVIVE, old, out),
            Body::Renew { spot, at, cut, new } => {
                spot.put_counted(RENEW, out);
                varint::put(at as u64, out);
                varint::put(cut as u64, out);
                out.extend_from_slice(new);
            }
            Body::Split { place, page, key } => put_pointer(SPLIT, place, page, key, out),
            Body::AdoptParent { place, page, key } => {
                put_pointer(ADOPT_PARENT, place, page, key, out);
            }
            Body::AdoptChild => out.push(ADOPT_CHILD),
            Body::Purge { places } => {
                out.push(PURGE);
                out.extend_from_slice(places);
            }
            Body::Absorb { high, foster, entries } => put_absorb(high, foster, entries, out),
            Body::Disown { place, page } => put_pointer(DISOWN, place, page, &[], out),
            Body::Clear => out.push(CLEAR),
        }
    }

    /// The body that these bytes are.
    ///
    /// # Errors
    /// They are none.
    pub(crate) fn parse(encoded: &'a [u8]) -> Result<Body<'a>, Unfit> {
        let mut rest = encoded;
        let from = &mut rest;
        Ok(match byte(from)? {
            INSERT => Body::Insert { spot: Spot::take(from)?, value: from },
            REPLACE => {
                let (spot, at) = (Spot::take(from)?, size(from)?);
                Body::Replace { spot, at, old: bytes(from)?, new: from }
            }
            GHOST => ended(Body::Ghost(Spot::take(from)?), from)?,
            UNGHOST => ended(Body::Unghost(Spot::take(from)?), from)?,
            REVIVE => Body::Revive { spot: Spot::take(from)?, old: bytes(from)?, new: from },
            UNREVIVE => Body::Unrevive { spot: Spot::take(from)?, old: from },
            RENEW => {
                let spot = Spot::take(from)?;
                Body::Renew { spot, at: size(from)?, cut: size(from)?, new: from }
            }
            SPLIT => Body::Split { place: size(from)?, page: page(from)?, key: from },
            ADOPT_PARENT => Body::AdoptParent { place: size(from)?, page: page(from)?, key: from },
            ADOPT_CHILD => ended(Body::AdoptChild, from)?,
            PURGE => Body::Purge { places: from },
            ABSORB => {
                let (high, key) = (fence(from)?, fence(from)?);
                let foster = key.map(|key| Ok(Foster { key, page: page(from)? })).transpose()?;
                Body::Absorb { high, foster, entries: from }
            }
            DISOWN => ended(Body::Disown { place: size(from)?, page: page(from)? }, from)?,
            CLEAR => ended(Body::Clear, from)?,
            _ => return Err(Unfit("no body begins so")),
        })
    }

    /// The value that is there instead of another one from then on, if all of it is told.
    pub(crate) fn comes(&self) -> Option<&'a [u8]> {
        match *self {
            Body::Replace { at: 0, new, .. } | Body::Revive { new, .. } => Some(new),
            _ => None,
        }
    }

    /// The value that was there instead until then, if all of it is told.
    pub(crate) fn goes(&self) -> Option<&'a [u8]> {
        match *self {
            Body::Replace { at: 0, old, .. } | Body::Revive { old, .. } => Some(old),
            _ => None,
        }
    }

    /// The entry that it is about, if it is about one of a leaf.
    #[must_use]
    pub(crate) fn spot(&self) -> Option<Spot<'a>> {
        match *self {
            Body::Insert { spot, .. }
            | Body::Replace { spot, .. }
            | Body::Ghost(spot)
            | Body::Unghost(spot)
            | Body::Revive { spot, .. }
            | Body::Unrevive { spot, .. }
            | Body::Renew { spot, .. } => Some(spot),
            _ => None,
        }
    }
}

impl<'a> Spot<'a> {
    fn put(&self, op: u8, behind: &[u8], out: &mut Vec<u8>) {
        self.put_counted(op, out);
        out.extend_from_slice(behind);
    }

    fn put_counted(&self, op: u8, out: &mut Vec<u8>) {
        out.push(op);
        varint::put(self.tree.get(), out);
        varint::put(self.place as u64, out);
        put_bytes(self.key, out);
    }

    fn take(rest: &mut &'a [u8]) -> Result<Spot<'a>, Unfit> {
        Ok(Spot { tree: page(rest)?, place: size(rest)?, key: bytes(rest)? })
    }
}

fn put_pointer(op: u8, place: usize, page: PageNumber, key: &[u8], out: &mut Vec<u8>) {
    out.push(op);
    varint::put(place as u64, out);
    varint::put(page.get(), out);
    out.extend_from_slice(key);
}

fn put_absorb(high: Option<&[u8]>, foster: Option<Foster<'_>>, entries: &[u8], out: &mut Vec<u8>) {
    out.push(ABSORB);
    put_fence(high, out);
    put_fence(foster.map(|foster| foster.key), out);
    if let Some(foster) = foster {
        varint::put(foster.page.get(), out);
    }
    out.extend_from_slice(entries);
}

fn ended<'a>(body: Body<'a>, rest: &[u8]) -> Result<Body<'a>, Unfit> {
    if rest.is_empty() { Ok(body) } else { Err(Unfit("a body is longer than what it says")) }
}

#[cfg(test)]
mod tests;

//! Changes of a transaction that lie in pages of their own, and what stands for them.
//!
//! Byte table: FORMAT.md, "Aside".
//!
//! Promise: what stands for changes says how many they are and where; no change is taken for it.
//! Never: reads or makes a page.

use holdfast_pages::{Unfit, bodies, varint};

use crate::node::fields::{number, page, size};
use crate::node::large::{LARGE_VALUE_BYTES_MAX, Large};

/// What it begins with, and no body of a change.
const ASIDE: u8 = 64;

/// Where the oldest changes of a transaction lie that are not undone, as
/// [`holdfast_pages::bodies`]. If the first of those stands for others in turn, they are older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aside {
    /// How many changes it stands for.
    pub(crate) changes: u64,
    /// Their bodies, in pages as a large value of the tree of names has.
    pub(crate) large: Large,
}

/// What lies there, in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opened<'a> {
    /// What is older.
    pub(crate) older: Option<Aside>,
    /// The bodies of changes, the oldest first.
    pub(crate) bodies: Vec<&'a [u8]>,
}

impl Aside {
    /// The body that stands for the changes.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.push(ASIDE);
        varint::put(self.changes, out);
        varint::put(self.large.bytes as u64, out);
        varint::put(self.large.first.get(), out);
    }

    /// What a body stands for; none if it is one of a change.
    ///
    /// # Errors
    /// It is neither.
    pub(crate) fn parse(body: &[u8]) -> Result<Option<Aside>, Unfit> {
        let Some((&ASIDE, mut rest)) = body.split_first() else { return Ok(None) };
        let (changes, bytes, first) = (number(&mut rest)?, size(&mut rest)?, page(&mut rest)?);
        let fits = changes > 0 && (1..=LARGE_VALUE_BYTES_MAX).contains(&bytes) && rest.is_empty();
        let large = Large { bytes, first };
        if fits { Ok(Some(Aside { changes, large })) } else { Err(Unfit("no changes lie so")) }
    }
}

impl<'a> Opened<'a> {
    /// What these bytes are, which lie in pages or are to.
    ///
    /// # Errors
    /// No changes are so.
    pub(crate) fn of(bytes: &'a [u8]) -> Result<Opened<'a>, Unfit> {
        let mut bodies = bodies::all(bytes).ok_or(Unfit("no changes are told so"))?;
        let first = bodies.first().ok_or(Unfit("there are no changes"))?;
        let older = Aside::parse(first)?;
        bodies.drain(..usize::from(older.is_some()));
        Ok(Opened { older, bodies })
    }

    /// How many changes it has.
    pub(crate) fn changes(&self) -> u64 {
        self.older.map_or(0, |older| older.changes) + self.bodies.len() as u64
    }
}

/// Appends what is older and bodies, as they lie in pages.
pub(crate) fn put_parts<'a>(
    older: Option<Aside>,
    all: impl Iterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) {
    if let Some(older) = older {
        let mut body = Vec::new();
        older.put(&mut body);
        bodies::put(&body, out);
    }
    all.for_each(|body| bodies::put(body, out));
}

#[cfg(test)]
mod tests;

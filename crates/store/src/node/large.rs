//! Values that are too large to lie beside their keys, as bytes.
//!
//! Byte tables: FORMAT.md, "Value" and "Large".
//!
//! Promise: a leaf's value says whether it is the value or where that is, and no value is taken for
//! the other; a page of a large value says whose it is and which one follows.
//! Never: reads or makes a page.

use std::borrow::Cow;

use holdfast_pages::{Page, PageKind, PageNumber, Unfit, varint};

use crate::node::fields::{number, page as page_in};
use crate::node::{NODE_BYTES, VALUE_BYTES_MAX};

/// The longest value, in bytes. Who reads or changes one has all of it in memory.
pub const LARGE_VALUE_BYTES_MAX: usize = 1 << 30;
/// Bytes of a large value that a page has.
pub(crate) const LARGE_PAGE_BYTES: usize = NODE_BYTES - HEAD_BYTES;

/// What a value begins with that is not itself. No text in UTF-8 does.
const ESCAPE: u8 = 0xFE;
const PLAIN: u8 = 0;
const LARGE: u8 = 1;

/// Before the bytes of a page: the next page, and how many bytes there are.
const HEAD_BYTES: usize = 10;

/// What the value of an entry of a leaf says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored<'a> {
    /// It is this.
    Plain(&'a [u8]),
    /// It is elsewhere.
    Large(Large),
}

/// Where a large value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Large {
    pub(crate) bytes: usize,
    /// The first of its pages.
    pub(crate) first: PageNumber,
}

/// A page of a large value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// The next page; [`PageNumber::NONE`] behind the last.
    pub(crate) next: PageNumber,
    pub(crate) bytes: &'a [u8],
}

impl Large {
    /// How many pages it has.
    pub(crate) fn pages(self) -> u64 {
        self.bytes.div_ceil(LARGE_PAGE_BYTES) as u64
    }
}

impl<'a> Stored<'a> {
    /// What the bytes in the leaf say.
    #[inline]
    pub(crate) fn of(bytes: &'a [u8]) -> Result<Stored<'a>, Unfit> {
        match bytes {
            [ESCAPE, PLAIN, value @ ..] => Ok(Stored::Plain(value)),
            [ESCAPE, LARGE, place @ ..] => Large::take(place).map(Stored::Large),
            [ESCAPE, ..] => Err(Unfit("no value is stored so")),
            value => Ok(Stored::Plain(value)),
        }
    }

    /// Where the value is, if it is large.
    pub(crate) fn large_of(bytes: &'a [u8]) -> Option<Large> {
        match Stored::of(bytes) {
            Ok(Stored::Large(large)) => Some(large),
            _ => None,
        }
    }
}

/// What a leaf says of a value that lies there; none if it is too large for that.
pub(crate) fn plain(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let stored = if value.first() == Some(&ESCAPE) {
        Cow::Owned([&[ESCAPE, PLAIN], value].concat())
    } else {
        Cow::Borrowed(value)
    };
    (stored.len() <= VALUE_BYTES_MAX).then_some(stored)
}

impl Large {
    /// What a leaf says of it.
    pub(crate) fn stored(&self) -> Vec<u8> {
        let mut stored = vec![ESCAPE, LARGE];
        varint::put(self.bytes as u64, &mut stored);
        varint::put(self.first.get(), &mut stored);
        stored
    }

    fn take(mut rest: &[u8]) -> Result<Large, Unfit> {
        let (bytes, first) = (number(&mut rest)? as usize, page_in(&mut rest)?);
        let fits = rest.is_empty() && (1..=LARGE_VALUE_BYTES_MAX).contains(&bytes);
        if fits { Ok(Large { bytes, first }) } else { Err(Unfit("no large value is so")) }
    }
}

impl<'a> Part<'a> {
    /// The part that a page of this tree has.
    pub(crate) fn of(page: &'a Page, tree: PageNumber) -> Result<Part<'a>, Unfit> {
        if page.kind() != Some(PageKind::Large) || page.tree() != tree {
            return Err(Unfit("the page has no large value of this tree"));
        }
        Part::in_contents(page.contents())
    }

    pub(crate) fn in_contents(contents: &'a [u8]) -> Result<Part<'a>, Unfit> {
        let (next, rest) = contents.split_first_chunk().ok_or(Unfit("a page is too short"))?;
        let (length, rest) = rest.split_first_chunk().ok_or(Unfit("a page is too short"))?;
        let bytes = rest.get(..u16::from_le_bytes(*length).into());
        let bytes = bytes.ok_or(Unfit("a large value is longer than its page"))?;
        Ok(Part { next: PageNumber(u64::from_le_bytes(*next)), bytes })
    }

    /// Fills a page, whose contents are zeros.
    pub(crate) fn fill(&self, contents: &mut [u8]) -> Result<(), Unfit> {
        if self.bytes.len() > LARGE_PAGE_BYTES {
            return Err(Unfit("a large value is longer than its page"));
        }
        contents[..8].copy_from_slice(&self.next.get().to_le_bytes());
        contents[8..HEAD_BYTES].copy_from_slice(&(self.bytes.len() as u16).to_le_bytes());
        contents[HEAD_BYTES..][..self.bytes.len()].copy_from_slice(self.bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;

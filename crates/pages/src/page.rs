//! A page: 8 KiB with a head that says which page it is and which record it has got to.
//!
//! Byte table: FORMAT.md, "Page".
//!
//! Promise: what is loaded from a device was written as this page of this store, whole, or the
//! difference has a name.
//! Never: knows what the contents mean; checks a page that is in memory.

pub(crate) mod apply;
pub(crate) mod images;
pub(crate) mod page_file;
pub(crate) mod versions;

use std::fmt;

use holdfast_io::checksum::crc32c;

use crate::stream::rsn::{PageNumber, Rsn};
use crate::stream::tag::Tag;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 8192;
/// Bytes of its head; the contents are the rest.
pub const PAGE_HEAD_BYTES: usize = 32;

/// The version of pages that this program reads and writes.
const VERSION: u16 = 1;

const CHECK: usize = 0;
const VERSION_AT: usize = 4;
const KIND: usize = 6;
const NUMBER: usize = 8;
const RSN: usize = 16;
const SINCE_IMAGE: usize = 24;
const TREE: usize = 28;

/// Where the second half of a page begins. The halves are what operating systems keep files in.
pub(crate) const SECOND_HALF: usize = PAGE_BYTES / 2;

const _: () = assert!(TREE + 4 == PAGE_HEAD_BYTES && PAGE_HEAD_BYTES < SECOND_HALF);

/// One page in memory. A new one is *nothing*: all zeros, which no page on a device is.
#[derive(Clone)]
pub struct Page(Box<[u8; PAGE_BYTES]>);

/// What a page is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum PageKind {
    /// Keys and values of a tree.
    Leaf = 1,
    /// Keys and pages of a tree.
    Inner = 2,
    /// A part of a large value.
    Large = 3,
    /// Nothing, until it is used anew.
    Free = 4,
}

/// Bytes of a record do not fit the page that they are about, for this reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit(pub &'static str);

/// Why bytes are not the page that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageFault {
    /// All zeros: never written, or lost.
    Zeroed,
    /// The check does not match: damaged, torn, or of another store.
    Check,
    /// Whole, but another page.
    Number(PageNumber),
    /// Whole, but of a version that this program does not know.
    Version(u16),
    /// Whole, but of a kind that this program does not know.
    Kind(u16),
}

impl PageKind {
    fn of(number: u16) -> Option<PageKind> {
        Some(match number {
            1 => PageKind::Leaf,
            2 => PageKind::Inner,
            3 => PageKind::Large,
            4 => PageKind::Free,
            _ => return None,
        })
    }
}

impl Page {
    /// Nothing.
    #[must_use]
    pub fn zeroed() -> Page {
        let bytes = vec![0; PAGE_BYTES].into_boxed_slice();
        Page(bytes.try_into().expect("a page has as many bytes as a page"))
    }

    /// Which page this is; [`PageNumber::NONE`] if it is nothing.
    #[must_use]
    #[inline]
    pub fn number(&self) -> PageNumber {
        PageNumber(self.u64_at(NUMBER))
    }

    /// The last record that was applied to it.
    #[must_use]
    #[inline]
    pub fn rsn(&self) -> Rsn {
        Rsn(self.u64_at(RSN))
    }

    /// What it is used for; none if it is nothing.
    #[must_use]
    #[inline]
    pub fn kind(&self) -> Option<PageKind> {
        PageKind::of(self.u16_at(KIND))
    }

    /// The root of the tree that it belongs to, if any.
    #[must_use]
    pub fn tree(&self) -> PageNumber {
        PageNumber(u64::from(self.u32_at(TREE)))
    }

    /// Bytes of records applied since the last image of the whole page.
    #[must_use]
    #[inline]
    pub fn since_image_bytes(&self) -> u32 {
        self.u32_at(SINCE_IMAGE)
    }

    /// What lies behind the head.
    #[must_use]
    #[inline]
    pub fn contents(&self) -> &[u8] {
        &self.0[PAGE_HEAD_BYTES..]
    }

    /// What lies behind the head, to be changed by what a record says.
    #[inline]
    pub fn contents_mut(&mut self) -> &mut [u8] {
        &mut self.0[PAGE_HEAD_BYTES..]
    }

    /// What lies far from its head.
    pub(crate) fn second_half(&self) -> &[u8] {
        &self.0[SECOND_HALF..]
    }

    /// Makes it nothing.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Makes it this page, with zeros for contents and no record applied.
    ///
    /// # Panics
    /// If the number is [`PageNumber::NONE`], or the tree's root does not lie within 32 TiB.
    pub fn begin(&mut self, number: PageNumber, kind: PageKind, tree: PageNumber) {
        assert!(number != PageNumber::NONE, "0 is never a page");
        let tree = u32::try_from(tree.get()).expect("roots lie within the first 2^32 pages");
        self.clear();
        self.put_at(VERSION_AT, &VERSION.to_le_bytes());
        self.put_at(KIND, &(kind as u16).to_le_bytes());
        self.put_at(NUMBER, &number.get().to_le_bytes());
        self.put_at(TREE, &tree.to_le_bytes());
    }

    /// Says that it has got to this record.
    #[inline]
    pub(crate) fn stamp(&mut self, rsn: Rsn, since_image_bytes: u32) {
        self.put_at(RSN, &rsn.get().to_le_bytes());
        self.put_at(SINCE_IMAGE, &since_image_bytes.to_le_bytes());
    }

    /// Computes the check and returns the bytes as a device gets them.
    pub fn seal(&mut self, tag: Tag) -> &[u8; PAGE_BYTES] {
        let check = check_of(&self.0, self.number(), tag);
        self.put_at(CHECK, &check.to_le_bytes());
        &self.0
    }

    /// Takes the place of what is here, if `bytes` are page `number` of the store with this tag.
    ///
    /// # Errors
    /// See [`PageFault`]; what is here stays as it is.
    pub fn load(
        &mut self,
        bytes: &[u8; PAGE_BYTES],
        number: PageNumber,
        tag: Tag,
    ) -> Result<(), PageFault> {
        check(bytes, number, tag)?;
        self.0.copy_from_slice(bytes);
        self.put_at(CHECK, &[0; 4]);
        Ok(())
    }

    /// All of it but its check.
    pub(crate) fn copy(&self) -> &[u8] {
        &self.0[VERSION_AT..]
    }

    /// Makes it what [`Page::copy`] gave of page `number` when that had got to this record.
    pub(crate) fn become_copy(
        &mut self,
        copy: &[u8],
        number: PageNumber,
        rsn: Rsn,
    ) -> Result<(), Unfit> {
        if copy.len() != PAGE_BYTES - VERSION_AT {
            return Err(Unfit("a copy is as long as a page"));
        }
        self.put_at(CHECK, &[0; VERSION_AT]);
        self.put_at(VERSION_AT, copy);
        let is_it = self.u16_at(VERSION_AT) == VERSION && self.kind().is_some();
        let is_there = (self.number(), self.rsn()) == (number, rsn);
        if is_it && is_there { Ok(()) } else { Err(Unfit("it is no copy of this page")) }
    }

    /// Whether the two are the same but for the check, which means nothing in memory.
    #[must_use]
    pub fn same_bytes(&self, other: &Page) -> bool {
        self.0[VERSION_AT..] == other.0[VERSION_AT..]
    }

    fn put_at(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes(field(&self.0, at))
    }

    fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes(field(&self.0, at))
    }

    fn u64_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(field(&self.0, at))
    }
}

/// Whether the bytes are this page. The check is seeded with the number that they themselves tell,
/// so that a page that was written to a wrong place is known as what it is.
fn check(bytes: &[u8; PAGE_BYTES], number: PageNumber, tag: Tag) -> Result<(), PageFault> {
    let found = PageNumber(u64::from_le_bytes(field(bytes, NUMBER)));
    if u32::from_le_bytes(field(bytes, CHECK)) != check_of(bytes, found, tag) {
        let zeroed = bytes.iter().all(|byte| *byte == 0);
        return Err(if zeroed { PageFault::Zeroed } else { PageFault::Check });
    }
    if found != number {
        return Err(PageFault::Number(found));
    }
    match u16::from_le_bytes(field(bytes, VERSION_AT)) {
        VERSION => {}
        found => return Err(PageFault::Version(found)),
    }
    let kind = u16::from_le_bytes(field(bytes, KIND));
    PageKind::of(kind).map(|_| ()).ok_or(PageFault::Kind(kind))
}

fn check_of(bytes: &[u8; PAGE_BYTES], number: PageNumber, tag: Tag) -> u32 {
    let seed = crc32c(tag.get(), &number.get().to_le_bytes());
    crc32c(seed, &bytes[VERSION_AT..])
}

#[inline]
fn field<const BYTES: usize>(page: &[u8; PAGE_BYTES], at: usize) -> [u8; BYTES] {
    page[at..at + BYTES].try_into().expect("a slice is as long as it was cut")
}

impl fmt::Debug for Page {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Page");
        out.field("number", &self.number()).field("kind", &self.kind()).field("rsn", &self.rsn());
        out.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

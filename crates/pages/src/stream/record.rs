//! Records: one change each, as bytes and back.
//!
//! Byte table: FORMAT.md, "Record".
//!
//! Promise: a record has one encoding, and what was encoded is what is parsed; anything else is a
//! [`RecordFault`], never a panic.
//! Never: looks into a body, or says what a record does.

use crate::stream::rsn::{PageNumber, Rsn, Slot};
use crate::varint;

const UPDATE: u8 = 1;
const COMPENSATE: u8 = 2;
const SYSTEM: u8 = 3;
const IMAGE: u8 = 4;
const FREE: u8 = 5;
const COMMIT: u8 = 6;
const ABORTED: u8 = 7;
const CLEANED: u8 = 8;
const CHECKPOINT: u8 = 9;
const OPENED: u8 = 10;
const COPY: u8 = 11;
const RETOLD: u8 = 12;

/// Most numbers that a record begins with.
const NUMBERS_MAX: usize = 3;
/// Bytes of a record that are not told by its own length: kind, and the length itself.
const HEAD_BYTES_MAX: usize = 1 + varint::BYTES_MAX;

/// One record and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Where it starts.
    pub rsn: Rsn,
    /// Where the next one starts.
    pub end: Rsn,
    /// What it says.
    pub what: What<'a>,
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// A transaction changed a page, and may have to undo that.
    Update {
        /// The transaction.
        slot: Slot,
        /// The page.
        at: PageLink,
        /// The change.
        body: &'a [u8],
    },
    /// A transaction undid the newest of its changes that was not undone before.
    Compensate {
        /// The transaction.
        slot: Slot,
        /// The page, which need not be the one that was changed then.
        at: PageLink,
        /// The change.
        body: &'a [u8],
    },
    /// A page changed in a way that nobody undoes.
    System {
        /// The page.
        at: PageLink,
        /// The change.
        body: &'a [u8],
    },
    /// All that a page holds. The only record of the stream that a page can begin with.
    Image {
        /// The page.
        at: PageLink,
        /// What its user's [`crate::Contents`] made of it.
        bytes: &'a [u8],
    },
    /// A page is not used any more.
    Free {
        /// The page.
        at: PageLink,
    },
    /// A transaction is committed.
    Commit(Slot),
    /// A transaction has undone everything.
    Aborted(Slot),
    /// The newest changes of a transaction that are not undone are told otherwise from here on:
    /// in fewer bytes and the rest elsewhere, or whole again.
    Retold {
        /// The transaction.
        slot: Slot,
        /// How many bodies go, the newest ones.
        count: u64,
        /// The bodies that come for them, as [`crate::bodies`].
        bodies: &'a [u8],
    },
    /// The page file holds every page as of this place, synced.
    Cleaned(Rsn),
    /// What a restart begins with.
    Checkpoint(&'a [u8]),
    /// The store was opened.
    Opened(Opened),
    /// All that a page is, head and contents, as a backup had it. It stands in a run, in the place
    /// of the record that the page had got to, and never in the stream.
    Copy {
        /// The page.
        page: PageNumber,
        /// Its bytes, without its check.
        bytes: &'a [u8],
    },
}

/// Which page a record is about, and which of its records came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLink {
    /// The page.
    pub page: PageNumber,
    /// Its record before this one; [`Rsn::NONE`] if it begins anew.
    pub before: Rsn,
}

/// Who opened a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The version of what it holds.
    pub version: u16,
    /// How often it was opened, this time included.
    pub opens: u64,
    /// The identity of the store.
    pub identity: [u8; 16],
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordFault {
    /// The bytes end inside the record.
    Short,
    /// No record is of this kind.
    UnknownKind(u8),
    /// A number is written as none is, or is larger than it can be.
    Number,
    /// The record is longer than what it says, or shorter.
    Length,
    /// It is about page 0, or its page's record before it cannot be where it says.
    Link,
}

impl What<'_> {
    /// Appends the record that says this at `rsn`.
    ///
    /// # Panics
    /// If it is about a page whose record before it does not stand before it.
    #[inline]
    pub fn put(&self, rsn: Rsn, out: &mut Vec<u8>) {
        Written::of(rsn, self).put(out);
    }

    /// The page that the record is about, if it is about one.
    #[must_use]
    #[inline]
    pub fn link(&self) -> Option<PageLink> {
        match *self {
            What::Update { at, .. }
            | What::Compensate { at, .. }
            | What::System { at, .. }
            | What::Image { at, .. }
            | What::Free { at } => Some(at),
            What::Copy { page, .. } => Some(PageLink { page, before: Rsn::NONE }),
            What::Commit(_)
            | What::Aborted(_)
            | What::Retold { .. }
            | What::Cleaned(_)
            | What::Checkpoint(_)
            | What::Opened(_) => None,
        }
    }

    /// Whether it tells all of its page, so that nobody needs the records before it.
    #[must_use]
    #[inline]
    pub fn is_whole(&self) -> bool {
        matches!(self, What::Image { .. } | What::Copy { .. })
    }
}

/// A record as it is written: numbers, then bytes.
struct Written<'a> {
    kind: u8,
    numbers: [u64; NUMBERS_MAX],
    /// How many of them there are.
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Written<'a> {
    fn new<const COUNT: usize>(kind: u8, some: [u64; COUNT], bytes: &'a [u8]) -> Written<'a> {
        let mut numbers = [0; NUMBERS_MAX];
        numbers[..COUNT].copy_from_slice(&some);
        Written { kind, numbers, count: COUNT, bytes }
    }

    /// `what`, if it stands at `rsn`.
    fn of(rsn: Rsn, what: &'a What<'_>) -> Written<'a> {
        let back = |at: PageLink| back(rsn, at);
        match what {
            What::Update { slot, at, body } => {
                Written::new(UPDATE, [slot.0.into(), at.page.get(), back(*at)], body)
            }
            What::Compensate { slot, at, body } => {
                Written::new(COMPENSATE, [slot.0.into(), at.page.get(), back(*at)], body)
            }
            What::System { at, body } => Written::new(SYSTEM, [at.page.get(), back(*at)], body),
            What::Image { at, bytes } => Written::new(IMAGE, [at.page.get(), back(*at)], bytes),
            What::Free { at } => Written::new(FREE, [at.page.get(), back(*at)], &[]),
            What::Commit(slot) => Written::new(COMMIT, [slot.0.into()], &[]),
            What::Aborted(slot) => Written::new(ABORTED, [slot.0.into()], &[]),
            What::Retold { slot, count, bodies } => {
                Written::new(RETOLD, [slot.0.into(), *count], bodies)
            }
            What::Cleaned(upto) => Written::new(CLEANED, [upto.get()], &[]),
            What::Checkpoint(bytes) => Written::new(CHECKPOINT, [], bytes),
            What::Opened(opened) => {
                Written::new(OPENED, [opened.version.into(), opened.opens], &opened.identity)
            }
            What::Copy { page, bytes } => Written::new(COPY, [page.get()], bytes),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        let numbers = &self.numbers[..self.count];
        let length = numbers.iter().map(|number| varint::bytes(*number)).sum::<usize>();
        let length = length + self.bytes.len();
        out.reserve(HEAD_BYTES_MAX + length);
        out.push(self.kind);
        varint::put(length as u64, out);
        numbers.iter().for_each(|number| varint::put(*number, out));
        out.extend_from_slice(self.bytes);
    }
}

/// How far a page's record before this one lies back; 0 if there is none.
fn back(rsn: Rsn, at: PageLink) -> u64 {
    if at.before == Rsn::NONE { 0 } else { rsn.since(at.before) }
}

/// The record at the front of `bytes`, which stands at `rsn`.
///
/// # Errors
/// See [`RecordFault`].
#[inline]
pub fn parse(rsn: Rsn, bytes: &[u8]) -> Result<Record<'_>, RecordFault> {
    let mut rest = bytes;
    let (kind, behind) = rest.split_first().ok_or(RecordFault::Short)?;
    rest = behind;
    let length = number(&mut rest)?;
    let length = usize::try_from(length).map_err(|_| RecordFault::Short)?;
    let fields = rest.get(..length).ok_or(RecordFault::Short)?;
    let end = rsn.advance((bytes.len() - rest.len() + length) as u64);
    Ok(Record { rsn, end, what: what(rsn, *kind, fields)? })
}

/// What a record of this kind says in these bytes.
#[inline]
fn what(rsn: Rsn, kind: u8, mut rest: &[u8]) -> Result<What<'_>, RecordFault> {
    let from = &mut rest;
    Ok(match kind {
        UPDATE => What::Update { slot: slot(from)?, at: link(rsn, from)?, body: from },
        COMPENSATE => What::Compensate { slot: slot(from)?, at: link(rsn, from)?, body: from },
        SYSTEM => What::System { at: link(rsn, from)?, body: from },
        IMAGE => What::Image { at: any_link(rsn, from)?, bytes: from },
        FREE => ended(What::Free { at: link(rsn, from)? }, from)?,
        COMMIT => ended(What::Commit(slot(from)?), from)?,
        ABORTED => ended(What::Aborted(slot(from)?), from)?,
        RETOLD => What::Retold { slot: slot(from)?, count: number(from)?, bodies: from },
        CLEANED => ended(What::Cleaned(Rsn(number(from)?)), from)?,
        CHECKPOINT => What::Checkpoint(from),
        OPENED => What::Opened(opened(from)?),
        COPY => What::Copy { page: page(from)?, bytes: from },
        unknown => return Err(RecordFault::UnknownKind(unknown)),
    })
}

#[inline]
fn ended<'a>(what: What<'a>, rest: &[u8]) -> Result<What<'a>, RecordFault> {
    if rest.is_empty() { Ok(what) } else { Err(RecordFault::Length) }
}

/// A number inside a record. One that ends behind the record is as wrong as one that is too long.
#[inline]
fn number(rest: &mut &[u8]) -> Result<u64, RecordFault> {
    varint::take(rest).ok_or(RecordFault::Number)
}

#[inline]
fn small(rest: &mut &[u8]) -> Result<u16, RecordFault> {
    u16::try_from(number(rest)?).map_err(|_| RecordFault::Number)
}

#[inline]
fn slot(rest: &mut &[u8]) -> Result<Slot, RecordFault> {
    small(rest).map(Slot)
}

#[inline]
fn page(rest: &mut &[u8]) -> Result<PageNumber, RecordFault> {
    let page = PageNumber(number(rest)?);
    if page == PageNumber::NONE { Err(RecordFault::Link) } else { Ok(page) }
}

/// A page that was there before.
#[inline]
fn link(rsn: Rsn, rest: &mut &[u8]) -> Result<PageLink, RecordFault> {
    let at = any_link(rsn, rest)?;
    if at.before == Rsn::NONE { Err(RecordFault::Link) } else { Ok(at) }
}

#[inline]
fn any_link(rsn: Rsn, rest: &mut &[u8]) -> Result<PageLink, RecordFault> {
    let (page, back) = (page(rest)?, number(rest)?);
    let before = match back {
        0 => Some(Rsn::NONE),
        back => rsn.get().checked_sub(back).map(Rsn).filter(|before| *before >= Rsn::FIRST),
    };
    before.map(|before| PageLink { page, before }).ok_or(RecordFault::Link)
}

fn opened(rest: &mut &[u8]) -> Result<Opened, RecordFault> {
    let (version, opens) = (small(rest)?, number(rest)?);
    let identity = <[u8; 16]>::try_from(*rest).map_err(|_| RecordFault::Length)?;
    Ok(Opened { version, opens, identity })
}

/// The records in a stretch of the stream, in order. A fault is the last thing that comes.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    next: Rsn,
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// The records of `bytes`, the first of which stands at `first`.
    #[must_use]
    pub fn new(first: Rsn, bytes: &'a [u8]) -> Records<'a> {
        Records { next: first, rest: bytes }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, RecordFault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = parse(self.next, self.rest);
        self.rest = match &record {
            Ok(record) => &self.rest[record.end.since(self.next) as usize..],
            Err(_) => &[],
        };
        self.next = record.as_ref().map_or(self.next, |record| record.end);
        Some(record)
    }
}

#[cfg(test)]
mod tests;

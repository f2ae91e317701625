//! What writer and reader of a run agree on: names, footer, index, checks.
//!
//! Byte tables: FORMAT.md, "Run" and what follows it.
//!
//! Promise: what is parsed is what was put, or it is refused.
//! Never: touches a file.

use std::path::PathBuf;

use holdfast_io::checksum::crc32c;
use holdfast_log::Lsn;

use crate::stream::record::{Record, parse};
use crate::stream::rsn::{PageNumber, Rsn};
use crate::stream::tag::Tag;
use crate::varint;

/// Where records stand in a run that are about no page.
pub const NO_PAGE: PageNumber = PageNumber(u64::MAX);

/// The newest version of runs that this program reads and writes.
pub(crate) const VERSION: u16 = 2;
/// The version of a run whose blocks are as they were put.
pub(crate) const UNCOMPRESSED: u16 = 1;
pub(crate) const CHECK_BYTES: usize = 4;
pub(crate) const FOOTER_BYTES: usize = 120;
pub(crate) const INDEX_ENTRY_BYTES: usize = 24;
const MAGIC: [u8; 8] = *b"hold-run";
/// Where a footer says whether records are left out.
const TRIMMED: usize = 112;

/// Which records a run has: all from `begin` up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSpan {
    /// 0 for one window of the stream; one more than the runs it was merged from.
    pub level: u16,
    /// Where its first record stands.
    pub begin: Rsn,
    /// Where the first record behind it stands.
    pub end: Rsn,
}

impl RunSpan {
    /// The name of the run's file.
    pub(crate) fn name(&self) -> String {
        format!("run-{:x}-{:016x}-{:016x}", self.level, self.begin.get(), self.end.get())
    }

    /// The path of the run's file.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(self.name())
    }

    /// The path of a run of this level until it is whole.
    pub(crate) fn path_unfinished(&self) -> PathBuf {
        PathBuf::from(format!("run-{:x}.new", self.level))
    }

    /// Whether a file of this name is a run that is not whole.
    pub(crate) fn is_unfinished(name: &[u8]) -> bool {
        name.starts_with(b"run-") && name.ends_with(b".new")
    }

    /// The span that a file of this name has, if it is the name of one.
    pub(crate) fn of_name(name: &[u8]) -> Option<RunSpan> {
        let name = std::str::from_utf8(name).ok()?;
        let mut words = name.strip_prefix("run-")?.split('-');
        let level = u16::from_str_radix(words.next()?, 16).ok()?;
        let mut rsn = || u64::from_str_radix(words.next()?, 16).ok().map(Rsn);
        let span = RunSpan { level, begin: rsn()?, end: rsn()? };
        (span.name() == name && span.begin < span.end).then_some(span)
    }
}

/// The end of a run, which says where everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) version: u16,
    pub(crate) span: RunSpan,
    pub(crate) blocks: u32,
    pub(crate) begin_lsn: Lsn,
    pub(crate) end_lsn: Lsn,
    pub(crate) first_utc_ns: i64,
    pub(crate) last_utc_ns: i64,
    /// Where head, frames, index and bloom begin, and where the last of them ends.
    pub(crate) parts: [u64; PARTS + 1],
    pub(crate) checks: [u32; PARTS],
    /// Whether records are left out that later images of their pages replace.
    pub(crate) is_trimmed: bool,
}

/// Parts of a run behind its blocks.
pub(crate) const PARTS: usize = 4;
pub(crate) const HEAD: usize = 0;
pub(crate) const FRAMES: usize = 1;
pub(crate) const INDEX: usize = 2;
pub(crate) const BLOOM: usize = 3;

/// Why bytes are not the footer of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FooterFault {
    Damaged,
    OtherVersion(u16),
}

impl Footer {
    pub(crate) fn bytes(&self, tag: Tag) -> [u8; FOOTER_BYTES] {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.span.level.to_le_bytes());
        out.extend_from_slice(&self.blocks.to_le_bytes());
        let rsns = [self.span.begin.get(), self.span.end.get()];
        let lsns = [self.begin_lsn.get(), self.end_lsn.get()];
        let times = [self.first_utc_ns as u64, self.last_utc_ns as u64];
        let numbers = rsns.iter().chain(&lsns).chain(&times).chain(&self.parts[..PARTS]);
        numbers.for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        self.checks.iter().for_each(|check| out.extend_from_slice(&check.to_le_bytes()));
        out.extend_from_slice(&u32::from(self.is_trimmed).to_le_bytes());
        out.extend_from_slice(&crc32c(tag.get(), &out).to_le_bytes());
        out.try_into().expect("a footer has as many bytes as a footer")
    }

    /// The footer in these bytes, which lie at `at`.
    pub(crate) fn parse(
        bytes: &[u8; FOOTER_BYTES],
        at: u64,
        tag: Tag,
    ) -> Result<Footer, FooterFault> {
        let (told, check) = bytes.split_at(FOOTER_BYTES - CHECK_BYTES);
        if check != crc32c(tag.get(), told).to_le_bytes() || told[..8] != MAGIC {
            return Err(FooterFault::Damaged);
        }
        let version = u16_at(bytes, 8);
        if !(UNCOMPRESSED..=VERSION).contains(&version) {
            return Err(FooterFault::OtherVersion(version));
        }
        let number = |which: usize| u64_at(bytes, 16 + 8 * which);
        let (begin, end) = (Rsn(number(0)), Rsn(number(1)));
        let footer = Footer {
            version,
            span: RunSpan { level: u16_at(bytes, 10), begin, end },
            blocks: u32_at(bytes, 12),
            begin_lsn: Lsn(number(2)),
            end_lsn: Lsn(number(3)),
            first_utc_ns: number(4) as i64,
            last_utc_ns: number(5) as i64,
            parts: [number(6), number(7), number(8), number(9), at],
            checks: std::array::from_fn(|part| u32_at(bytes, 96 + 4 * part)),
            is_trimmed: u32_at(bytes, TRIMMED) == 1,
        };
        let index_bytes = footer.parts[BLOOM].checked_sub(footer.parts[INDEX]);
        let indexed = index_bytes == Some(u64::from(footer.blocks) * INDEX_ENTRY_BYTES as u64);
        let whole =
            indexed && footer.parts.is_sorted() && begin < end && u32_at(bytes, TRIMMED) < 2;
        if whole { Ok(footer) } else { Err(FooterFault::Damaged) }
    }
}

/// Where a block begins, and with which record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockPlace {
    pub(crate) page: PageNumber,
    pub(crate) rsn: Rsn,
    pub(crate) offset: u64,
}

impl BlockPlace {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        for number in [self.page.get(), self.rsn.get(), self.offset] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    pub(crate) fn parse(bytes: &[u8; INDEX_ENTRY_BYTES]) -> BlockPlace {
        let page = PageNumber(u64_at(bytes, 0));
        BlockPlace { page, rsn: Rsn(u64_at(bytes, 8)), offset: u64_at(bytes, 16) }
    }
}

/// Appends an entry of a block: how far behind the run's begin the record stands, and the record as
/// it stands in the stream.
pub(crate) fn put_entry(begin: Rsn, rsn: Rsn, record: &[u8], out: &mut Vec<u8>) {
    varint::put(rsn.since(begin), out);
    out.extend_from_slice(record);
}

/// Takes an entry off the front of `rest`; none if there is no whole one.
pub(crate) fn take_entry<'a>(begin: Rsn, rest: &mut &'a [u8]) -> Option<(Record<'a>, &'a [u8])> {
    let rsn = begin.get().checked_add(varint::take(rest)?).map(Rsn)?;
    let record = parse(rsn, rest).ok()?;
    let (bytes, behind) = rest.split_at(record.end.since(rsn) as usize);
    *rest = behind;
    Some((record, bytes))
}

/// The page that a record is sorted by.
pub(crate) fn page_of(record: &Record<'_>) -> PageNumber {
    record.what.link().map_or(NO_PAGE, |at| at.page)
}

/// The check of bytes of a run that lie at `offset`.
pub(crate) fn check_of(tag: Tag, begin: Rsn, offset: u64, bytes: &[u8]) -> u32 {
    let seed = crc32c(tag.get(), &begin.get().to_le_bytes());
    crc32c(crc32c(seed, &offset.to_le_bytes()), bytes)
}

/// A difference of either sign as a number that is small if it is.
pub(crate) fn zigzag(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// What [`zigzag`] was told.
pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("a slice is as long as it was cut"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a slice is as long as it was cut"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a slice is as long as it was cut"))
}

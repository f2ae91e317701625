//! The catalogue: what belongs to the log. Two small files that say the same (`copies`).
//!
//! Byte table: FORMAT.md, "Catalogue".
//!
//! Promise: a segment file that is missing is noticed because it is named here; what is encoded
//! here is decoded here.
//! Never: is touched on the way of a commit.

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;
use holdfast_io::checksum::crc32c;

use crate::config::{Parity, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};
use crate::error::FileFault;
use crate::format::bytes::{array_at, u32_at, u64_at};
use crate::format::shape::Shape;
use crate::range::LsnRange;

pub(crate) mod copies;

/// Name of the file.
pub(crate) const CATALOGUE: &str = "catalogue";
/// The version this program writes of a log that was truncated; it reads the others, too.
pub(crate) const VERSION: u32 = 3;
/// Without cuts. This program writes it, too, so that others read what they can read.
const VERSION_UNCUT: u32 = 2;
/// Without a sequence, in one file that nothing follows in.
const VERSION_ALONE: u32 = 1;

const MAGIC: u32 = 0x4346_4648;
const HEAD_BYTES: usize = 72;
const HEAD_BYTES_ALONE: usize = 64;
const ENTRY_BYTES: usize = 16;
const HOLE_BYTES: usize = 16;
/// A log that lost this many stretches is to be repaired, not cut once more.
pub(crate) const HOLES_MAX: usize = 1024;
/// So many cuts are remembered. Of those before only the pads tell.
pub(crate) const CUTS_MAX: usize = 1024;
/// More than any ring could ever need; bounds what is read.
pub(crate) const ENTRIES_MAX: usize = 1 << 16;
/// No log is opened this often.
const GENERATIONS_MAX: u32 = 1 << 31;
/// Highest generation of a frame: what opens add to it is one, too.
pub(crate) const GENERATION_MAX: u32 = GENERATIONS_MAX - (1 << 13);
/// A file's name has eight digits.
pub(crate) const FILES_MAX: u32 = 100_000_000;
/// No catalogue is written this often.
const SEQUENCES_MAX: u64 = 1 << 62;
/// No log grows this long, so no position in one overflows.
pub(crate) const LOG_BYTES_MAX: u64 = 1 << 62;

/// One segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Number in the file's name.
    pub(crate) file: u32,
    /// Which stretch of the log it holds: its first position divided by the segment's size.
    pub(crate) number: u64,
}

/// The contents of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Catalogue {
    /// Identity of the log.
    pub(crate) identity: [u8; 16],
    /// Bytes of frames in one segment.
    pub(crate) segment_bytes: u64,
    /// Nothing below is needed; a frame starts here.
    pub(crate) first: Lsn,
    /// A watermark, so that a lost end of the log is noticed.
    pub(crate) durable: Lsn,
    /// Every generation used so far is below.
    pub(crate) generations_below: u32,
    /// What the segments keep beside the frames.
    pub(crate) parity: Parity,
    /// In ascending, gapless order of number.
    pub(crate) entries: Vec<Entry>,
    /// Stretches that an open has cut out of the log, in ascending order; each ends with a span.
    pub(crate) holes: Vec<LsnRange>,
    /// Stretches that were truncated, in ascending order. Whatever a file has there is not of this
    /// log: it may be an older file.
    pub(crate) cuts: Vec<LsnRange>,
}

impl Catalogue {
    /// The catalogue as bytes, the `sequence`th that were written.
    pub(crate) fn encode(&self, sequence: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.entries.len() * ENTRY_BYTES);
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        let version = if self.cuts.is_empty() { VERSION_UNCUT } else { VERSION };
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.identity);
        bytes.extend_from_slice(&self.segment_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.first.get().to_le_bytes());
        bytes.extend_from_slice(&self.durable.get().to_le_bytes());
        bytes.extend_from_slice(&self.generations_below.to_le_bytes());
        bytes.extend_from_slice(&(self.parity as u16).to_le_bytes());
        bytes.extend_from_slice(&(self.holes.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&sequence.to_le_bytes());
        for entry in &self.entries {
            bytes.extend_from_slice(&entry.file.to_le_bytes());
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(&entry.number.to_le_bytes());
        }
        self.holes.iter().for_each(|hole| put(&mut bytes, hole.from.get(), hole.to.get()));
        if version == VERSION {
            put(&mut bytes, self.cuts.len() as u64, 0);
            self.cuts.iter().for_each(|cut| put(&mut bytes, cut.from.get(), cut.to.get()));
        }
        let check = crc32c(0, &bytes[12..]);
        bytes[8..12].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The catalogue that these bytes begin with, and its sequence.
    fn decode(bytes: &[u8]) -> Result<(Catalogue, u64), Fault> {
        let short = || Fault::File(FileFault::Length { found: bytes.len() as u64 });
        if bytes.len() < HEAD_BYTES_ALONE {
            return Err(short());
        }
        if u32_at(bytes, 0) != MAGIC {
            return Err(Fault::File(FileFault::Magic));
        }
        let version = u32_at(bytes, 4);
        let head_bytes = match version {
            VERSION | VERSION_UNCUT => HEAD_BYTES,
            VERSION_ALONE => HEAD_BYTES_ALONE,
            found => return Err(Fault::Version { found }),
        };
        let (entries, holes) = (u32_at(bytes, 12) as usize, u32_at(bytes, 60) >> 16);
        let holes_at = entries.saturating_mul(ENTRY_BYTES).saturating_add(head_bytes);
        let holes_end = holes_at.saturating_add(holes as usize * HOLE_BYTES);
        let (cuts_at, cuts) = match version {
            VERSION => (holes_end.saturating_add(HOLE_BYTES), cuts_at(bytes, holes_end)),
            _ => (holes_end, 0),
        };
        let end = cuts_at.saturating_add(cuts.saturating_mul(HOLE_BYTES));
        // A count that was damaged may say anything: then nothing is as long as it says.
        let said = bytes.get(12..end).filter(|_| version != VERSION_ALONE || end == bytes.len());
        if said.is_none_or(|said| u32_at(bytes, 8) != crc32c(0, said)) {
            return Err(Fault::File(FileFault::Check));
        }
        let Some(parity) = parity(u32_at(bytes, 60) & 0xFFFF) else {
            return Err(Fault::File(FileFault::Contents));
        };
        let catalogue = Catalogue {
            identity: array_at(bytes, 16),
            segment_bytes: u64_at(bytes, 32),
            first: Lsn(u64_at(bytes, 40)),
            durable: Lsn(u64_at(bytes, 48)),
            generations_below: u32_at(bytes, 56),
            parity,
            entries: records(&bytes[head_bytes..holes_at], entry),
            holes: records(&bytes[holes_at..holes_end], hole),
            cuts: records(&bytes[cuts_at..end], hole),
        };
        let sequence = if version == VERSION_ALONE { 0 } else { u64_at(bytes, HEAD_BYTES_ALONE) };
        if !catalogue.is_sensible() || sequence >= SEQUENCES_MAX {
            return Err(Fault::File(FileFault::Contents));
        }
        Ok((catalogue, sequence))
    }

    /// Whether an open takes it.
    pub(crate) fn is_sensible(&self) -> bool {
        let sizes = SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX;
        self.segment_bytes.is_power_of_two()
            && sizes.contains(&self.segment_bytes)
            && self.first <= self.durable
            && self.durable.is_aligned(BLOCK_BYTES)
            && self.first.is_aligned(8)
            && self
                .entries
                .windows(2)
                .all(|two| two[0].number.checked_add(1) == Some(two[1].number))
            && self.covers(self.first)
            && self.generations_below < GENERATIONS_MAX
            && self.entries.iter().all(|entry| entry.file < FILES_MAX)
            && self
                .entries
                .last()
                .is_some_and(|last| last.number < LOG_BYTES_MAX / self.segment_bytes)
            && self.durable <= self.limit()
            && are_in_order(&self.holes)
            && are_in_order(&self.cuts)
            && self.cuts.iter().all(|cut| cut.to.is_aligned(BLOCK_BYTES))
            && self.cuts.last().is_none_or(|cut| cut.to <= self.limit())
    }

    /// What each segment file is like.
    pub(crate) fn shape(&self) -> Shape {
        Shape { segment_bytes: self.segment_bytes, parity: self.parity }
    }

    /// Where there is nothing of the log: holes and cuts, in order.
    pub(crate) fn gaps(&self) -> Vec<LsnRange> {
        let mut all: Vec<LsnRange> = self.holes.iter().chain(&self.cuts).copied().collect();
        all.sort_by_key(|gap| gap.from);
        let mut gaps = Vec::with_capacity(all.len());
        all.into_iter().for_each(|gap| join(&mut gaps, gap));
        gaps
    }

    /// The log without what was truncated. What this takes of other cuts and of holes is one with
    /// it. Of too many cuts, the first are forgotten.
    pub(crate) fn without(mut self, mut cut: LsnRange) -> Catalogue {
        self.holes.retain(|hole| hole.from < cut.from);
        self.holes.iter_mut().for_each(|hole| hole.to = hole.to.min(cut.from));
        while let Some(last) = self.cuts.pop_if(|last| cut.from <= last.to) {
            cut = LsnRange { from: last.from.min(cut.from), to: last.to.max(cut.to) };
        }
        self.cuts.push(cut);
        self.durable = self.durable.max(cut.to);
        let needless = self.cuts.len().saturating_sub(CUTS_MAX);
        self.cuts.drain(..needless);
        self
    }

    /// Forgets the holes and cuts that end below.
    pub(crate) fn forget_below(&mut self, first: Lsn) {
        self.holes.retain(|hole| hole.to > first);
        self.cuts.retain(|cut| cut.to > first);
    }

    /// One past the last position that a listed segment has a place for.
    pub(crate) fn limit(&self) -> Lsn {
        let last = self.entries.last().map_or(0, |last| last.number + 1);
        Lsn(last * self.segment_bytes)
    }

    /// Whether a listed segment has a place for it.
    pub(crate) fn covers(&self, lsn: Lsn) -> bool {
        let number = lsn.get() / self.segment_bytes;
        self.entries.iter().any(|entry| entry.number == number)
    }
}

/// Records of a length, all present.
fn records<T, const BYTES: usize>(bytes: &[u8], of: fn(&[u8; BYTES]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(of).collect()
}

fn entry(bytes: &[u8; ENTRY_BYTES]) -> Entry {
    Entry { file: u32_at(bytes, 0), number: u64_at(bytes, 8) }
}

fn hole(bytes: &[u8; HOLE_BYTES]) -> LsnRange {
    LsnRange { from: Lsn(u64_at(bytes, 0)), to: Lsn(u64_at(bytes, 8)) }
}

/// Two numbers, one after the other.
fn put(bytes: &mut Vec<u8>, one: u64, other: u64) {
    bytes.extend_from_slice(&one.to_le_bytes());
    bytes.extend_from_slice(&other.to_le_bytes());
}

/// The number of cuts, which lies here; more than there can be if it does not.
fn cuts_at(bytes: &[u8], at: usize) -> usize {
    let count = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    count.map_or(usize::MAX, |count| u64::from_le_bytes(*count) as usize)
}

fn are_in_order(stretches: &[LsnRange]) -> bool {
    stretches.iter().all(|it| it.from < it.to)
        && stretches.windows(2).all(|two| two[0].to <= two[1].from)
}

/// Adds a gap to those before it, and to the last of them if they meet.
fn join(gaps: &mut Vec<LsnRange>, next: LsnRange) {
    match gaps.last_mut() {
        Some(last) if last.to >= next.from => last.to = last.to.max(next.to),
        _ => gaps.push(next),
    }
}

/// Where a log with these gaps goes on, if this position lies in one.
#[inline]
pub(crate) fn behind_gap(gaps: &[LsnRange], lsn: Lsn) -> Option<Lsn> {
    gaps.iter().find(|gap| gap.from <= lsn && lsn < gap.to).map(|gap| gap.to)
}

fn parity(number: u32) -> Option<Parity> {
    [Parity::None, Parity::TenPercent].into_iter().find(|parity| *parity as u32 == number)
}

/// Why bytes are no catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    File(FileFault),
    Version { found: u32 },
}

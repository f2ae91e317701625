//! The roster: small records that outlive the process which wrote them.
//!
//! Promise: after a death between any two stores, the records are those of before or of after the
//! call that was under way, each whole; a damaged record is reported, not returned.
//! Never: slows an append to the ring: it has its own section and its own lock, in the process.
//!
//! Two halves; one counts. [`Roster::append`] writes behind the last record of that half,
//! [`Roster::rewrite`] fills the other half. Either then stores one word that says which half
//! counts and how much of it: the only store that changes what a reader finds.
//! Byte table: FORMAT.md, "Roster".

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::control::{ControlPage, PAGE_BYTES};
use crate::raw::Mapping;
use crate::superblock::{Section, Superblock};

/// The most bytes one half can have: its length shares a word with a check.
pub(crate) const HALF_BYTES_MAX: u64 = 1 << 30;

/// Length and check before each record.
const HEADER_BYTES: u64 = 8;

/// Bit 0 of the published word: which half counts. Lengths are multiples of 8, so it is free.
const HALF_BIT: u32 = 1;

/// The roster has no room for the record. Rewrite it without what is no longer needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RosterFull;

/// A record is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RosterFault {
    /// Where it lies, in bytes from the start of the region.
    pub offset: u64,
}

/// The records of a served region. All calls take turns.
#[derive(Debug)]
pub struct Roster {
    mapping: Arc<Mapping>,
    section: Section,
    /// Seeds every check, so that another region's records are no records here.
    seed: u32,
    turn: Mutex<()>,
}

/// Which half counts, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Published {
    half: u64,
    used: u64,
}

impl Roster {
    pub(crate) fn new(mapping: Arc<Mapping>, superblock: &Superblock) -> Roster {
        let seed = crc32c::crc32c(&superblock.identity);
        Roster { mapping, section: superblock.roster, seed, turn: Mutex::new(()) }
    }

    /// More than all records together ever have.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.section.bytes / 2
    }

    /// Adds a record behind the others.
    pub fn append(&self, record: &[u8]) -> Result<(), RosterFull> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let Published { half, used } = self.published();
        let used_then = self.write_record(half, used, record)?;
        self.publish(Published { half, used: used_then });
        Ok(())
    }

    /// Replaces all records in one step; if they do not fit, the old ones stay.
    pub fn rewrite<R: AsRef<[u8]>>(
        &self,
        records: impl IntoIterator<Item = R>,
    ) -> Result<(), RosterFull> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let half = 1 - self.published().half;
        let mut used = 0;
        for record in records {
            used = self.write_record(half, used, record.as_ref())?;
        }
        self.publish(Published { half, used });
        Ok(())
    }

    /// All records, in the order in which they were added.
    pub fn records(&self) -> Result<Vec<Vec<u8>>, RosterFault> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        records_in(&self.mapping, self.section, self.seed)
    }

    /// Writes a record into a half, from `used` on, and returns where the next one goes.
    fn write_record(&self, half: u64, used: u64, record: &[u8]) -> Result<u64, RosterFull> {
        let need = HEADER_BYTES + (record.len() as u64).next_multiple_of(8);
        let half_bytes = self.section.bytes / 2;
        if need > half_bytes - used {
            return Err(RosterFull);
        }
        let at = self.section.offset + half * half_bytes + used;
        let words = self.mapping.words(at..at + need);
        let length = record.len() as u32;
        let check = record_check(self.seed, length, record);
        words[0].store(u64::from(length) | u64::from(check) << 32, Ordering::Relaxed);
        for (word, bytes) in words[1..].iter().zip(record.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
        self.mapping.persist(at, need);
        Ok(used + need)
    }

    fn published(&self) -> Published {
        let word = published_word(self.mapping.control());
        parse(word, self.seed, self.section).expect("the attach checked the word we publish")
    }

    fn publish(&self, published: Published) {
        let value = published.used as u32 | published.half as u32 & HALF_BIT;
        let check = crc32c::crc32c_append(self.seed, &value.to_le_bytes());
        let word = u64::from(value) | u64::from(check) << 32;
        // EDGE roster-published: the records are whole before the word covers them.
        self.mapping.control().notes.0.roster_published.store(word, Ordering::Release);
        self.mapping.persist_control();
    }
}

/// Bytes of a section whose halves hold `half_bytes` each.
pub(crate) fn section_bytes(half_bytes: u64) -> u64 {
    (2 * half_bytes).max(1).next_multiple_of(PAGE_BYTES)
}

/// Whether the word that says which half counts is one that [`Roster`] wrote.
pub(crate) fn is_whole(control: &ControlPage, superblock: &Superblock) -> bool {
    let seed = crc32c::crc32c(&superblock.identity);
    parse(published_word(control), seed, superblock.roster).is_some()
}

/// The records in a roster that somebody else may be writing.
pub(crate) fn records_of(
    mapping: &Mapping,
    superblock: &Superblock,
) -> Result<Vec<Vec<u8>>, RosterFault> {
    records_in(mapping, superblock.roster, crc32c::crc32c(&superblock.identity))
}

fn records_in(mapping: &Mapping, section: Section, seed: u32) -> Result<Vec<Vec<u8>>, RosterFault> {
    let word = published_word(mapping.control());
    let published = parse(word, seed, section).ok_or(RosterFault { offset: section.offset })?;
    let start = section.offset + published.half * (section.bytes / 2);
    let words = mapping.words(start..start + published.used);
    let mut records = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let fault = RosterFault { offset: start + at as u64 * 8 };
        let record = read_record(&words[at..], seed).ok_or(fault)?;
        at += 1 + record.len().div_ceil(8);
        records.push(record);
    }
    Ok(records)
}

/// The record at the start of `words`, if it is whole. Its length is bounded before it is used.
fn read_record(words: &[AtomicU64], seed: u32) -> Option<Vec<u8>> {
    let header = words[0].load(Ordering::Relaxed);
    let (length, check) = (header as u32, (header >> 32) as u32);
    let body = words[1..].get(..(length as usize).div_ceil(8))?;
    let mut record = Vec::with_capacity(body.len() * 8);
    for word in body {
        record.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
    record.truncate(length as usize);
    (record_check(seed, length, &record) == check).then_some(record)
}

fn published_word(control: &ControlPage) -> u64 {
    // EDGE roster-published: having seen the word, the records it covers are whole.
    control.notes.0.roster_published.load(Ordering::Acquire)
}

/// What the word says, if its check and its bounds hold. A new region's zero is an empty roster.
fn parse(word: u64, seed: u32, section: Section) -> Option<Published> {
    let (value, check) = (word as u32, (word >> 32) as u32);
    if word != 0 && check != crc32c::crc32c_append(seed, &value.to_le_bytes()) {
        return None;
    }
    let half = u64::from(value & HALF_BIT);
    let used = u64::from(value & !HALF_BIT);
    (used.is_multiple_of(8) && used <= section.bytes / 2).then_some(Published { half, used })
}

fn record_check(seed: u32, length: u32, record: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &length.to_le_bytes()), record)
}

impl fmt::Display for RosterFull {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the roster is full: rewrite it without what is no longer needed")
    }
}

impl fmt::Display for RosterFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the roster's record at byte {} of the region is damaged", self.offset)
    }
}

impl std::error::Error for RosterFull {}
impl std::error::Error for RosterFault {}

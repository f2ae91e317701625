//! What a write of several blocks is about to do to the map.
//!
//! Promise: an intent is there whole or not at all; who finds one carries it out, and gets what its
//! writer would have got, however much of it was done.
//! Never: holds more than one: writers of several blocks take turns while they swap words.
//!
//! Byte table: FORMAT.md, "Intent".

use holdfast_io::checksum::crc32c;

use crate::memory::Memory;

/// Where it lies.
pub(crate) const INTENT_AT: u64 = 4096;

/// Bytes from its start to the first entry.
const ENTRIES_AT: u64 = INTENT_AT + 8;

/// Bytes of the page.
pub(crate) const INTENT_BYTES: u64 = 4096;

/// The most entries that the page has room for.
pub(crate) const ENTRIES_MAX: usize = ((INTENT_BYTES - 8) / 8) as usize;

/// A block, and the cell that it is about to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) block: u32,
    pub(crate) cell: u32,
}

/// Whether an intent is there, and whose it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DamagedIntent;

/// Writes down what is about to happen. From here on it will.
pub(crate) fn note<M: Memory>(memory: &M, seed: u32, entries: &[Entry]) {
    assert!(entries.len() <= ENTRIES_MAX, "a write has no more blocks than an intent");
    let words: Vec<u64> = entries.iter().map(|entry| entry.word()).collect();
    for (at, word) in (ENTRIES_AT..).step_by(8).zip(&words) {
        memory.store(at, *word);
    }
    memory.persist(ENTRIES_AT, 8 * words.len() as u64);
    let head = u64::from(words.len() as u32) | u64::from(check(seed, &words)) << 32;
    memory.store(INTENT_AT, head);
    memory.persist(INTENT_AT, 8);
}

/// Says that all of it has happened.
pub(crate) fn withdraw<M: Memory>(memory: &M) {
    memory.store(INTENT_AT, 0);
    memory.persist(INTENT_AT, 8);
}

/// What somebody was about to do; nothing, mostly.
pub(crate) fn found<M: Memory>(memory: &M, seed: u32) -> Result<Vec<Entry>, DamagedIntent> {
    let head = memory.load(INTENT_AT);
    if head == 0 {
        return Ok(Vec::new());
    }
    let (count, found) = (head as u32 as usize, (head >> 32) as u32);
    if count > ENTRIES_MAX {
        return Err(DamagedIntent);
    }
    let places = (ENTRIES_AT..).step_by(8).take(count);
    let words: Vec<u64> = places.map(|at| memory.load(at)).collect();
    let is_whole = found == check(seed, &words);
    if is_whole { Ok(words.into_iter().map(Entry::of).collect()) } else { Err(DamagedIntent) }
}

fn check(seed: u32, words: &[u64]) -> u32 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    crc32c(crc32c(seed, &(words.len() as u32).to_le_bytes()), &bytes)
}

impl Entry {
    fn word(self) -> u64 {
        u64::from(self.block) | u64::from(self.cell) << 32
    }

    fn of(word: u64) -> Entry {
        Entry { block: word as u32, cell: (word >> 32) as u32 }
    }
}

//! A region looked at from outside: for `status` while it is served, for rescue when it is not.
//!
//! Promise: works whoever serves the region, changes nothing, and copies only bytes that were
//! still published after the copy.
//! Never: hands out a reference into the region: another process writes it meanwhile.

use std::fmt;
use std::sync::atomic::Ordering;

use crate::control::{ControlPage, PAGE_BYTES, WORDS};
use crate::marks::Marks;
use crate::raw::Mapping;
use crate::roster::{self, RosterFault};
use crate::superblock::{GENERATION_OFFSET, Superblock, generation_in};

/// Why ring bytes could not be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObserveError {
    /// They are not in the ring: never published, or released already.
    Outside {
        /// What is in the ring.
        marks: Marks,
    },
    /// They were released while they were copied. Read the marks again and go on from there.
    Overwritten,
}

/// A read-only view of a region. What it says may be old by the time it is read.
#[derive(Debug)]
pub struct Observed {
    mapping: Mapping,
    superblock: Superblock,
}

impl Observed {
    pub(crate) fn new(mapping: Mapping, superblock: Superblock) -> Observed {
        Observed { mapping, superblock }
    }

    /// Whose region it is.
    #[must_use]
    pub fn identity(&self) -> [u8; 16] {
        self.superblock.identity
    }

    /// What it holds, by the name its maker gave it; zeros for the ring of a log.
    #[must_use]
    pub fn content(&self) -> [u8; 8] {
        self.superblock.content
    }

    /// How often it was attached; `None` if that field is damaged.
    #[must_use]
    pub fn generation(&self) -> Option<u64> {
        let words = self.mapping.words(0..PAGE_BYTES);
        let word = words[GENERATION_OFFSET as usize / 8].load(Ordering::Relaxed);
        generation_in(&self.superblock.identity, word).map(u64::from)
    }

    /// Bytes of the ring.
    #[must_use]
    pub fn ring_bytes(&self) -> u64 {
        self.superblock.ring.bytes
    }

    /// The marks, as they are: nobody checked their order.
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.control().marks.read()
    }

    /// The process that served the region last, or serves it now.
    #[must_use]
    pub fn server_pid(&self) -> u32 {
        self.control().notes.0.server_pid.load(Ordering::Relaxed)
    }

    /// The highest term in which it was attached, where hosts have terms.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.control().notes.0.term.load(Ordering::Relaxed)
    }

    /// The value of a shared word.
    ///
    /// # Panics
    /// If `index` is not below [`WORDS`].
    #[must_use]
    pub fn word(&self, index: usize) -> u64 {
        assert!(index < WORDS, "a region has {WORDS} words, {index} is not one of them");
        self.control().words.0[index].load(Ordering::Relaxed)
    }

    /// The roster's records. A fault may also mean that they were rewritten meanwhile.
    pub fn roster_records(&self) -> Result<Vec<Vec<u8>>, RosterFault> {
        roster::records_of(&self.mapping, &self.superblock)
    }

    /// Copies the published bytes from position `lsn` on, across the ring's end if need be.
    pub fn copy_bytes(&self, lsn: u64, into: &mut [u8]) -> Result<(), ObserveError> {
        let marks = self.marks();
        let end = lsn.checked_add(into.len() as u64);
        let inside = lsn >= marks.released && end.is_some_and(|end| end <= marks.tail);
        if !inside || into.len() as u64 > self.ring_bytes() {
            return Err(ObserveError::Outside { marks });
        }
        let ring = self.superblock.ring;
        let words = self.mapping.words(ring.offset..ring.end());
        for (position, byte) in (lsn..).zip(into.iter_mut()) {
            let at = position & (ring.bytes - 1);
            let word = words[(at / 8) as usize].load(Ordering::Relaxed);
            *byte = word.to_le_bytes()[(at % 8) as usize];
        }
        // EDGE read-to-reuse: the bytes are copied before the mark is looked at again.
        std::sync::atomic::fence(Ordering::Acquire);
        if self.marks().released > lsn { Err(ObserveError::Overwritten) } else { Ok(()) }
    }

    fn control(&self) -> &ControlPage {
        self.mapping.control()
    }
}

impl fmt::Display for ObserveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside { marks } => {
                write!(out, "the ring holds bytes {}..{} only", marks.released, marks.tail)
            }
            Self::Overwritten => out.write_str("the bytes were released while they were copied"),
        }
    }
}

impl std::error::Error for ObserveError {}

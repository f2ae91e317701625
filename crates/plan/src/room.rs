//! Who gets the room in durable memory.
//!
//! Promise: the pages with the most hits since the last checkpoint; of two with as many, the one
//! whose copy can stay where it is.
//! Never: moves a page.

/// A page that has a copy in durable memory, or is about to be written by a checkpoint.
///
/// In one word, so that many are compared fast: hits since the last checkpoint, then the place,
/// then the page, which decides between equals, so that a run can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate(u64);

/// Hits above this are as many.
const HITS_MAX: u32 = (1 << 30) - 1;

/// What it takes to keep a candidate in durable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A write, and somebody else's room.
    New = 0,
    /// A write, over the copy that is there.
    Renewed = 1,
    /// Nothing.
    Kept = 2,
}

impl Candidate {
    pub(crate) fn new(hits: u32, place: Place, page: u32) -> Candidate {
        Candidate(u64::from(hits.min(HITS_MAX)) << 34 | (place as u64) << 32 | u64::from(page))
    }

    pub(crate) fn page(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn is_new(self) -> bool {
        self.0 >> 32 & 0b11 == Place::New as u64
    }
}

/// Puts those that find no room in front. Returns how many they are.
pub(crate) fn losers_first(candidates: &mut [Candidate], room: usize) -> usize {
    let losers = candidates.len().saturating_sub(room);
    if losers > 0 && room > 0 {
        candidates.select_nth_unstable(losers);
    }
    losers
}

#[cfg(test)]
mod tests;

//! The end of what was written last to a file, so that only what differs is logged.
//!
//! A database rewrites the last page of its log at every commit, longer by one record. Most of the
//! page is what it was; logging the difference keeps the log as small as the change.
//!
//! Promise: [`Recent::differing`] names the part of a write that differs from what the file holds.
//! Never: answers from bytes that a later change of the file made untrue: every change that is not
//! a write calls [`Recent::forget`].

use std::ops::Range;

/// As much of the last write as is kept: two of PostgreSQL's pages.
const KEPT_BYTES_MAX: usize = 16 << 10;
/// What every disk writes whole.
const SECTOR_BYTES: u64 = 512;

/// The last bytes of the last write.
pub(crate) struct Recent {
    offset: u64,
    bytes: Vec<u8>,
    /// What differs begins and ends at multiples of this, or where the write does.
    grain_bytes: u64,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent { offset: 0, bytes: Vec::new(), grain_bytes: 1 }
    }
}

impl Recent {
    /// For a disk whose users write whole sectors: so does who brings the difference home. A sector
    /// of the home that a power cut destroyed is then in the log, all of it.
    pub(crate) fn in_sectors() -> Recent {
        Recent { grain_bytes: SECTOR_BYTES, ..Recent::default() }
    }

    /// The part of `data`, to be written at `offset`, that is not known to be there already.
    /// Empty if all of it is.
    pub(crate) fn differing(&self, data: &[u8], offset: u64) -> Range<usize> {
        let Some(known) = self.known_from(offset) else { return 0..data.len() };
        let same_front = equal_front(known, data);
        if same_front == data.len() {
            return data.len()..data.len();
        }
        let same_back = if known.len() >= data.len() {
            equal_back(&known[same_front..data.len()], &data[same_front..])
        } else {
            0
        };
        self.whole_grains(same_front, data.len() - same_back, data.len(), offset)
    }

    /// The part from `start` to `end` of `bytes` at `offset`, made longer at both ends.
    fn whole_grains(&self, start: usize, end: usize, bytes: usize, offset: u64) -> Range<usize> {
        let before = (offset + start as u64) % self.grain_bytes;
        let behind = (offset + end as u64).wrapping_neg() % self.grain_bytes;
        start.saturating_sub(before as usize)..bytes.min(end + behind as usize)
    }

    /// `data` now stands at `offset`; only its part `differing` was not there before.
    pub(crate) fn written(&mut self, data: &[u8], offset: u64, differing: Range<usize>) {
        if self.known_from(offset).is_some_and(|known| known.len() == data.len()) {
            let start = (offset - self.offset) as usize;
            self.bytes[start..][differing.clone()].copy_from_slice(&data[differing]);
            return;
        }
        let skipped = data.len().saturating_sub(KEPT_BYTES_MAX);
        self.bytes.clear();
        self.bytes.extend_from_slice(&data[skipped..]);
        self.offset = offset + skipped as u64;
    }

    /// Something else than a write changed the file.
    pub(crate) fn forget(&mut self) {
        self.bytes.clear();
    }

    /// What is known from `offset` on, if anything.
    fn known_from(&self, offset: u64) -> Option<&[u8]> {
        let start = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.bytes.get(start..).filter(|known| !known.is_empty())
    }
}

/// How many bytes at the front are equal; compared in blocks, so that the common case is a memcmp.
fn equal_front(one: &[u8], other: &[u8]) -> usize {
    let length = one.len().min(other.len());
    let (one, other) = (&one[..length], &other[..length]);
    let blocks = one.chunks(BLOCK).zip(other.chunks(BLOCK)).take_while(|(a, b)| a == b).count();
    let from = (blocks * BLOCK).min(length);
    from + one[from..].iter().zip(&other[from..]).take_while(|(a, b)| a == b).count()
}

/// How many bytes at the back are equal; the slices have one length.
fn equal_back(one: &[u8], other: &[u8]) -> usize {
    let blocks = one.rchunks(BLOCK).zip(other.rchunks(BLOCK)).take_while(|(a, b)| a == b).count();
    let from = (blocks * BLOCK).min(one.len());
    let (one, other) = (&one[..one.len() - from], &other[..other.len() - from]);
    let pairs = one.iter().rev().zip(other.iter().rev());
    from + pairs.take_while(|(a, b)| a == b).count()
}

/// Bytes compared at once.
const BLOCK: usize = 128;

#[cfg(test)]
mod tests;

//! Which pages a run surely has no record of.
//!
//! Byte table: FORMAT.md, "Bloom filter of a run".
//!
//! Promise: no page that was put in is ever missed; of the others about one in a hundred is not
//! told from them.
//! Never: checks its bytes; whoever stores them does.

use crate::stream::rsn::PageNumber;

const BITS_A_PAGE: u64 = 10;
const PROBES: u64 = 6;
/// A filter is made of whole words, at least one.
const WORD_BITS: u64 = 64;

/// A set of pages that may say yes where it should say no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bloom(Vec<u8>);

impl Bloom {
    /// The filter of these pages.
    pub(crate) fn of(pages: &[PageNumber]) -> Bloom {
        let bits = (pages.len() as u64 * BITS_A_PAGE).next_multiple_of(WORD_BITS).max(WORD_BITS);
        let mut bytes = vec![0; (bits / 8) as usize];
        for bit in pages.iter().flat_map(|page| probes(*page, bits)) {
            bytes[(bit / 8) as usize] |= 1 << (bit % 8);
        }
        Bloom(bytes)
    }

    /// The filter that these bytes are; none if no filter is as long.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Option<Bloom> {
        let whole = !bytes.is_empty() && (bytes.len() as u64 * 8).is_multiple_of(WORD_BITS);
        whole.then_some(Bloom(bytes))
    }

    /// The filter as bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether the page may have been put in.
    pub(crate) fn may_have(&self, page: PageNumber) -> bool {
        let set = |bit: u64| self.0[(bit / 8) as usize] & (1 << (bit % 8)) != 0;
        probes(page, self.0.len() as u64 * 8).all(set)
    }
}

/// The bits that stand for a page.
fn probes(page: PageNumber, bits: u64) -> impl Iterator<Item = u64> {
    let hash = mixed(page.get());
    let (first, step) = (hash >> 32, hash & 0xFFFF_FFFF | 1);
    (0..PROBES).map(move |probe| first.wrapping_add(probe.wrapping_mul(step)) % bits)
}

/// Spreads neighbouring numbers over all 64 bits (the finalizer of splitmix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests;

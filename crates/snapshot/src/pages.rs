//! Where the pages of one image are, and what they must be.
//!
//! Promise: a page that is all zeros takes no block; any other has one, and the check of its bytes.
//! Never: reads or writes a block.

use holdfast_io::checksum::crc32c;

/// Bytes of a page, and of a block.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Bytes of one page's entry in an index.
pub(crate) const ENTRY_BYTES: usize = 8;

/// Where a page is. Block 0 has the directory, so it means that the page is all zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) block: u32,
    pub(crate) check: u32,
}

/// The pages of an image. Words, because so many zeros cost nothing until they are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pages(Vec<u64>);

impl Page {
    pub(crate) fn is_zeros(self) -> bool {
        self.block == 0
    }

    /// Whether these are its bytes.
    pub(crate) fn has(self, bytes: &[u8]) -> bool {
        match self.is_zeros() {
            true => is_zeros(bytes),
            false => self.check == crc32c(0, bytes),
        }
    }
}

impl Pages {
    /// So many bytes of zeros.
    pub(crate) fn zeros(size_bytes: u64) -> Pages {
        let count = size_bytes.div_ceil(PAGE_BYTES as u64);
        Pages(vec![0; usize::try_from(count).expect("who asks has compared it with the store")])
    }

    pub(crate) fn get(&self, index: usize) -> Page {
        let word = self.0[index];
        Page { block: word as u32, check: (word >> 32) as u32 }
    }

    pub(crate) fn set(&mut self, index: usize, page: Page) {
        self.0[index] = u64::from(page.block) | u64::from(page.check) << 32;
    }

    /// The blocks that they have.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|word| *word as u32).filter(|block| *block != 0)
    }

    /// As an index has them.
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// What an index says.
    pub(crate) fn decode(bytes: &[u8]) -> Pages {
        let word = |bytes: &[u8; ENTRY_BYTES]| u64::from_le_bytes(*bytes);
        Pages(bytes.as_chunks().0.iter().map(word).collect())
    }
}

/// Whether all bytes are zeros: such pages take no room, and need not be put.
#[must_use]
pub fn is_zeros(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<16>();
    words.iter().all(|word| u128::from_le_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

//! What a lock is on: a key of a tree, as 64 bits.
//!
//! Promise: the same key of the same tree has the same name, in every process.
//! Never: tells two keys apart for certain. Two that share a name share a lock, and the worst of it
//! is that somebody waits for nothing.

use std::hash::{BuildHasherDefault, Hasher};

use holdfast_pages::{PageNumber, Unfit};

use crate::node::body::Body;

/// Odd, with about as many ones as zeros, like the two below: digits of the square roots of 2, 3
/// and 5.
const START: u64 = 0x6A09_E667_F3BC_C909;
const LEFT: u64 = 0xBB67_AE85_84CA_A73B;
const RIGHT: u64 = 0x3C6E_F372_FE94_F82B;
/// Bytes that are mixed in at once.
const CHUNK_BYTES: usize = 16;

/// The name of a key, and of the gap between it and the next key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(u64);

impl Name {
    /// The name of `key` in the tree with this root page.
    #[must_use]
    #[inline]
    pub(crate) fn of(tree: PageNumber, key: &[u8]) -> Name {
        let start = fold(tree.get() ^ LEFT, key.len() as u64 ^ START);
        Name(key.chunks(CHUNK_BYTES).fold(start, mix))
    }

    /// The name of the key that a change of a transaction is about.
    ///
    /// # Errors
    /// The bytes are no such change.
    pub(crate) fn of_change(body: &[u8]) -> Result<Name, Unfit> {
        let spot = Body::parse(body)?.spot().ok_or(Unfit("no transaction changes a page so"))?;
        Ok(Name::of(spot.tree, spot.key))
    }

    /// As a number.
    pub(crate) fn get(self) -> u64 {
        self.0
    }

    /// One of `count` about equal parts of all names.
    pub(crate) fn part(self, count: usize) -> usize {
        // From the upper bits: a hash table that is such a part goes by the lower ones.
        (self.0 >> 32) as usize % count
    }
}

fn mix(state: u64, chunk: &[u8]) -> u64 {
    let mut bytes = [0; CHUNK_BYTES];
    bytes[..chunk.len()].copy_from_slice(chunk);
    let both = u128::from_le_bytes(bytes);
    fold(both as u64 ^ state ^ LEFT, (both >> 64) as u64 ^ state.rotate_left(32) ^ RIGHT)
}

/// A product to which every bit of both contributes.
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

/// For tables whose keys are names: those are hashed already.
pub(crate) type ByName = BuildHasherDefault<Hashed>;

/// A hasher of one number, which it returns.
#[derive(Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a name is one number");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

#[cfg(test)]
mod tests;

//! What the bytes of one store are told from another's by.
//!
//! Promise: stores of different identities have, but for one case in 2^32, different tags.
//! Never: is a secret.

use holdfast_io::checksum::crc32c;

/// Four bytes that stand for the identity of a store: in each frame, and in the check of each page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(u32);

impl Tag {
    /// The tag of the store with this identity.
    #[must_use]
    pub fn of(identity: &[u8; 16]) -> Tag {
        Tag(crc32c(0, identity))
    }

    /// The tag as a number.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
}

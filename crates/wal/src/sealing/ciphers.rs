//! The ciphers of segments.
//!
//! Promise: the cipher of the segment that is read or written is at hand; another is derived.
//! Never: keeps more than one.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM_SIV, LessSafeKey, UnboundKey};

use super::derive;
use super::keys::Keys;

/// AES-256-GCM-SIV. The library calls a key less safe whose nonces are the caller's affair.
pub(crate) type Cipher = LessSafeKey;

/// The cipher with this key.
pub(crate) fn cipher(key: &[u8; 32]) -> Cipher {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM_SIV, key).expect("a key of 32 bytes is one"))
}

/// The cipher that was used last, and what it takes to make another.
pub(crate) struct Ciphers {
    keys: Arc<Keys>,
    identity: [u8; 16],
    /// Key id, segment number, and their cipher, which wipes itself.
    last: Option<(u32, u64, Arc<Cipher>)>,
}

impl Ciphers {
    pub(crate) fn new(keys: Arc<Keys>, identity: [u8; 16]) -> Ciphers {
        Ciphers { keys, identity, last: None }
    }

    pub(crate) fn identity(&self) -> [u8; 16] {
        self.identity
    }

    /// The cipher of a segment under the key with this id, if there is such a key.
    pub(crate) fn get(&mut self, id: u32, segment: u64) -> Option<&Arc<Cipher>> {
        let is_last = self.last.as_ref().is_some_and(|last| (last.0, last.1) == (id, segment));
        if !is_last {
            let key = derive::segment_key(self.keys.get(id)?, &self.identity, segment);
            let cipher = Arc::new(cipher(&key));
            self.last = Some((id, segment, cipher));
        }
        self.last.as_ref().map(|(_, _, cipher)| cipher)
    }
}

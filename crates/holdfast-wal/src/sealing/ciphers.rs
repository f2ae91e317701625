//! The ciphers of segments.
//!
//! Promise: the cipher of the segment that is read or written is at hand; another is derived.
//! Never: keeps more than one.

use std::sync::Arc;

use aes::Aes256Enc;
use aes_gcm_siv::{AesGcmSiv, KeyInit};

use super::derive;
use super::keys::Keys;

/// AES-256-GCM-SIV, which uses AES in one direction only.
pub(crate) type Cipher = AesGcmSiv<Aes256Enc>;

/// The cipher that was used last, and what it takes to make another.
pub(crate) struct Ciphers {
    keys: Arc<Keys>,
    identity: [u8; 16],
    /// Key id, segment number, and their cipher, which wipes itself.
    last: Option<(u32, u64, Box<Cipher>)>,
}

impl Ciphers {
    pub(crate) fn new(keys: Arc<Keys>, identity: [u8; 16]) -> Ciphers {
        Ciphers { keys, identity, last: None }
    }

    pub(crate) fn identity(&self) -> [u8; 16] {
        self.identity
    }

    /// The cipher of a segment under the key with this id, if there is such a key.
    pub(crate) fn get(&mut self, id: u32, segment: u64) -> Option<&Cipher> {
        let is_last = self.last.as_ref().is_some_and(|last| (last.0, last.1) == (id, segment));
        if !is_last {
            let key = derive::segment_key(self.keys.get(id)?, &self.identity, segment);
            let cipher = Box::new(Cipher::new((&*key).into()));
            self.last = Some((id, segment, cipher));
        }
        self.last.as_ref().map(|(_, _, cipher)| &**cipher)
    }
}

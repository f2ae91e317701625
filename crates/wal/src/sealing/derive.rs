//! What is derived from a master key, by HKDF-SHA256 (RFC 5869).
//!
//! Promise: nothing that is derived tells anything about the key, or about what else is derived.
//! Never: derives the same for two logs.

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use zeroize::Zeroizing;

/// Says what is derived: no two of these begin alike.
const SEGMENT: &[u8] = b"holdfast-wal 1 segment";
const CHECK: &[u8] = b"holdfast-wal 1 check";

/// The key of one segment.
pub(crate) fn segment_key(
    master: &[u8; 32],
    identity: &[u8; 16],
    segment: u64,
) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    derive(master, identity, &[SEGMENT, &segment.to_le_bytes()], &mut *key);
    key
}

/// By what the label of a log knows the key again.
pub(crate) fn check(master: &[u8; 32], identity: &[u8; 16]) -> [u8; 16] {
    let mut check = [0; 16];
    derive(master, identity, &[CHECK], &mut check);
    check
}

fn derive(master: &[u8; 32], identity: &[u8; 16], what: &[&[u8]], into: &mut [u8]) {
    let secret = Salt::new(HKDF_SHA256, identity).extract(master);
    let derived = secret.expand(what, Bytes(into.len())).and_then(|derived| derived.fill(into));
    derived.expect("what is asked for is shorter than what HKDF gives");
}

/// How much is derived.
struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

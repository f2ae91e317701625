//! FORMAT.md and the code say the same; keys and lengths are what they ought to be.

use std::sync::{Arc, Mutex};

use super::ciphers::cipher;
use super::{
    Aad, Ciphers, Contents, FLAG_SEALED, Keys, KeysFault, Lsn, Nonce, Padding, Scene, Seal, derive,
};

const KEY: [u8; 32] = [7; 32];
const IDENTITY: [u8; 16] = *b"0123456789abcdef";

fn seal(padding: Padding) -> Seal {
    let keys = Arc::new(Keys::new((258, &KEY), &[]).unwrap());
    let writing = Mutex::new(Ciphers::new(Arc::clone(&keys), IDENTITY));
    Seal { identity: IDENTITY, keys, padding, writing }
}

#[test]
fn a_sealed_payload_is_what_its_tables_say() {
    let contents = Contents { records: 3, flags: FLAG_SEALED };
    let scene = Scene { lsn: Lsn(0x0102_0304), generation: 0x0506, segment: 9, contents, key: 258 };
    let mut payload = [0xee; 4 + 4 + 11 + 16];
    seal(Padding::None).fill(&scene, b"the records", &mut payload);
    let key = derive::segment_key(&KEY, &IDENTITY, 9);
    let nonce = Nonce::assume_unique_for_key([4, 3, 2, 1, 0, 0, 0, 0, 6, 5, 0, 0]);
    let associated = [
        &IDENTITY[..],
        &[9, 0, 0, 0, 0, 0, 0, 0],
        &[4, 3, 2, 1, 0, 0, 0, 0],
        &[2, 1, 0, 0],
        &[3, 0],
        &[2],
    ]
    .concat();
    let (id, rest) = payload.split_at_mut(4);
    assert_eq!(id, [2, 1, 0, 0]);
    let inside = cipher(&key).open_in_place(nonce, Aad::from(associated), rest).unwrap();
    assert_eq!(inside, b"\x0b\0\0\0the records");
}

#[test]
fn the_cipher_gives_what_rfc_8452_says_in_its_appendix_c_2() {
    let (mut key, mut nonce, mut text) = ([0; 32], [0; 12], [0; 8]);
    (key[0], nonce[0], text[0]) = (1, 3, 1);
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = cipher(&key).seal_in_place_separate_tag(nonce, Aad::empty(), &mut text).unwrap();
    assert_eq!(hex(&text), "c2ef328e5c71c83b");
    assert_eq!(hex(tag.as_ref()), "843122130f7364b761e0b97427e3df28");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Both by another implementation: Python's `hmac` and `hashlib`.
#[test]
fn keys_are_derived_as_the_table_says() {
    assert_eq!(
        hex(&*derive::segment_key(&KEY, &IDENTITY, 9)),
        "185abe2fcc56e4ba1218ef3b2e10ddc82d27872fb3db1e64314cdf840c71f41d"
    );
    assert_eq!(hex(&derive::check(&KEY, &IDENTITY)), "7d08eb905a332832dc638df4da11edc3");
}

#[test]
fn every_segment_and_every_log_has_a_key_of_its_own() {
    let mut keys: Vec<_> =
        (0..100).map(|segment| *derive::segment_key(&KEY, &IDENTITY, segment)).collect();
    keys.push(*derive::segment_key(&KEY, b"another log's id", 0));
    keys.push(*derive::segment_key(&[8; 32], &IDENTITY, 0));
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 102);
}

#[test]
fn padding_never_shortens_and_leaves_few_lengths() {
    let lengths = |padding: Padding| {
        let mut all: Vec<u64> = (1..=1 << 20).map(|bytes| padding.of(bytes)).collect();
        assert!((1..).zip(&all).all(|(bytes, padded)| *padded >= bytes));
        all.dedup();
        all
    };
    assert_eq!(lengths(Padding::None).len(), 1 << 20);
    assert_eq!(lengths(Padding::Multiple(0)).len(), 1 << 20);
    let multiples = lengths(Padding::Multiple(1000));
    assert!(multiples.iter().all(|bytes| bytes % 1000 == 0));
    let padme = lengths(Padding::Padme);
    assert!((290..310).contains(&padme.len()), "{}", padme.len());
    assert!((1..=1 << 20).all(|bytes| Padding::Padme.of(bytes) * 100 <= bytes * 112));
    assert_eq!(
        [9, 17, 33, 1000, 1025].map(|bytes| Padding::Padme.of(bytes)),
        [10, 18, 36, 1024, 1088]
    );
}

#[test]
fn a_ring_has_each_id_once_and_does_not_show_its_keys() {
    let twice = Keys::new((1, &KEY), &[(2, &KEY), (1, &[9; 32])]);
    assert_eq!(twice.err(), Some(KeysFault::Twice { id: 1 }));
    let keys = Keys::new((1, &KEY), &[(2, &[9; 32])]).unwrap();
    assert_eq!(keys.current(), (1, &KEY));
    assert_eq!((keys.get(2), keys.get(3)), (Some(&[9; 32]), None));
    assert_eq!(format!("{keys:?}"), "Keys { current: 1, ids: [1, 2] }");
}

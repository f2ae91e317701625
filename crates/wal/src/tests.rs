//! FORMAT.md and the code say the same: bytes spelled out by hand.

use holdfast_io::checksum::crc32c;

use crate::key_mark::KeyMark;
use crate::open::label::Label;
use crate::payload;

/// The pieces, one after the other.
fn bytes(pieces: &[&[u8]]) -> Vec<u8> {
    pieces.concat()
}

#[test]
fn a_label_is_what_its_table_says() {
    let identity = *b"0123456789abcdef";
    let (record, format) = ("bank.transfer".to_owned(), "json".to_owned());
    let label = Label { identity, record_version: 7, key: None, record, format };
    let head = [&identity[..], &[7, 0, 0, 0], &[13, 0], &[4, 0]].concat();
    let whole = |seal: &[u8]| {
        let tail = bytes(&[&head, seal, b"bank.transfer", b"json"]);
        let check = crc32c(0, &tail).to_le_bytes();
        bytes(&[b"HFWL", &[1, 0, 0, 0], &check, &tail])
    };
    assert_eq!(label.encode(), whole(&[0; 24]));
    let key = Some(KeyMark { id: 258, check: *b"fedcba9876543210" });
    let seal = bytes(&[&[1, 0, 0, 0], &[2, 1, 0, 0], b"fedcba9876543210"]);
    assert_eq!(Label { key, ..label }.encode(), whole(&seal));
}

#[test]
fn a_payload_is_what_its_table_says() {
    let mut payload = Vec::new();
    for record in ["first", "12345678"] {
        let start = payload::begin(&mut payload);
        payload.extend_from_slice(record.as_bytes());
        payload::finish(&mut payload, start);
    }
    let check = |length: u8, record: &str| {
        crc32c(0, &bytes(&[&[length, 0, 0, 0], record.as_bytes()])).to_le_bytes()
    };
    let first = bytes(&[&[5, 0, 0, 0], &check(5, "first"), b"first", &[0; 3]]);
    let second = bytes(&[&[8, 0, 0, 0], &check(8, "12345678"), b"12345678"]);
    assert_eq!(payload, bytes(&[&first, &second]));
}

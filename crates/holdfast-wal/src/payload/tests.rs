//! Every bit of a payload counts.

use super::{begin, finish, take};

fn payload(records: &[&[u8]]) -> Vec<u8> {
    let mut payload = Vec::new();
    for record in records {
        let start = begin(&mut payload);
        payload.extend_from_slice(record);
        finish(&mut payload, start);
    }
    payload
}

fn records(payload: &[u8]) -> Option<Vec<&[u8]>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < payload.len() {
        let (bytes, next) = take(payload, at)?;
        found.push(&payload[bytes]);
        at = next;
    }
    Some(found)
}

#[test]
fn records_of_any_length_come_back_and_begin_at_multiples_of_eight() {
    let long = [7; 300];
    for length in 0..40 {
        let put: [&[u8]; 3] = [&long[..length], b"", b"the last"];
        let payload = payload(&put);
        assert_eq!(records(&payload).unwrap(), put);
        assert_eq!(take(&payload, 0).unwrap().1 % 8, 0);
    }
}

#[test]
fn no_single_bit_can_be_flipped_unnoticed() {
    let whole = payload(&[b"one", b"the second record", b""]);
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(records(&flipped), None, "bit {bit}");
    }
}

//! What is put is what is taken.

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

fn records(payload: &[u8], count: u16) -> Option<Vec<&[u8]>> {
    let (mut found, mut at) = (Vec::new(), 0);
    for _ in 0..count {
        let (bytes, next) = take(payload, count, at)?;
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
        assert_eq!(records(&payload, 3).unwrap(), put);
        assert_eq!(take(&payload, 3, 0).unwrap().1 % 8, 0);
    }
}

#[test]
fn a_set_of_one_record_is_the_record() {
    assert_eq!(records(b"alone", 1).unwrap(), [b"alone"]);
    assert_eq!(records(b"", 1).unwrap(), [b""]);
}

#[test]
fn a_length_that_leads_out_of_its_payload_is_no_record() {
    let whole = payload(&[b"one", b"the second record", b""]);
    for length in [4, 100, u32::MAX] {
        let mut broken = whole.clone();
        broken[..4].copy_from_slice(&length.to_le_bytes());
        assert_ne!(records(&broken, 3), records(&whole, 3), "{length}");
    }
    assert_eq!(records(&whole, 4), None, "fewer records than are told");
    assert_eq!(records(&whole[..20], 3), None);
}

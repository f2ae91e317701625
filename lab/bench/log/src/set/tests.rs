//! What a source gives.

use super::Source;
use crate::record::{Format, Record, SAMPLES, id};

#[test]
fn records_come_in_order_and_decode_to_what_they_are() {
    let mut source = Source::new(3, Format::MessagePack);
    let mut number = 0;
    for _ in 0..SAMPLES {
        let mut set = source.next_set(4);
        let typed: Vec<Record> = set.records().to_vec();
        for ((key, bytes), record) in set.encode().unwrap().zip(&typed) {
            assert_eq!(key, id(3, number));
            assert_eq!(&Format::MessagePack.decode(bytes).unwrap(), record);
            number += 1;
        }
    }
    assert_eq!(source.given(), number);
}

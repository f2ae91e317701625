//! What a record weighs.

use super::{Format, NUMBERS, Record, id, origin};

fn bytes(format: Format, record: &Record) -> Vec<u8> {
    let mut bytes = Vec::new();
    format.encode(record, &mut bytes).unwrap();
    bytes
}

#[test]
fn every_record_has_the_size_that_the_paper_gives() {
    for (place, mut record) in Record::samples().into_iter().enumerate() {
        for (writer, number) in [(0, 0), (0, NUMBERS - 1), (63, place as u32)] {
            record.id = id(writer, number);
            assert_eq!(bytes(Format::MessagePack, &record).len(), 113, "{record:?}");
            assert_eq!(origin(record.id), Some((writer, number)));
        }
    }
}

#[test]
fn what_is_encoded_is_decoded() {
    let record = Record::sample(7);
    for format in Format::ALL {
        assert_eq!(format.decode(&bytes(format, &record)).unwrap(), record, "{format:?}");
    }
}

#[test]
fn samples_differ() {
    assert_ne!(Record::sample(0), Record::sample(1));
}

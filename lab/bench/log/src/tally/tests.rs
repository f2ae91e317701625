//! What a tally refuses.

use super::Tally;
use crate::record::{Format, Record, id};

/// The record of a number, with the content of another.
fn mixed(number: u32, content: u32) -> Record {
    let mut record = Record::sample(content as usize);
    record.id = id(0, number);
    record
}

fn record(number: u32) -> Record {
    mixed(number, number)
}

#[test]
fn what_is_whole_and_in_order_is_taken() {
    let mut tally = Tally::of_content(Format::MessagePack);
    for number in 0..3 {
        tally.record(&record(number)).unwrap();
    }
    tally.expect(&[3]).unwrap();
}

#[test]
fn a_missing_a_doubled_and_a_changed_record_are_refused() {
    let mut tally = Tally::of_content(Format::MessagePack);
    tally.record(&record(0)).unwrap();
    assert!(tally.record(&record(0)).is_err());
    assert!(tally.record(&record(2)).is_err());
    assert!(tally.record(&mixed(1, 7)).is_err());
}

#[test]
fn another_count_is_refused() {
    let mut tally = Tally::of_order(Format::Json);
    tally.record(&record(0)).unwrap();
    assert!(tally.expect(&[2]).is_err());
    assert!(tally.expect(&[0]).is_err());
    assert!(tally.expect(&[1, 1]).is_err());
    tally.expect(&[1, 0]).unwrap();
}

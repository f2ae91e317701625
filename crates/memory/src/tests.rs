//! FORMAT.md and the code say the same.
//!
//! Promise: a field that moves, grows or is renamed on one side only fails here.

use holdfast_format_docs::{Field, Tables};

use crate::{FORMAT, control, superblock};

const TABLES: Tables = Tables::of(FORMAT);

fn told(fields: &[(&'static str, usize, usize)]) -> Vec<Field> {
    fields.iter().map(|(name, offset, size)| (*name, *offset..*offset + *size)).collect()
}

#[test]
fn the_superblock_table_is_the_superblock() {
    assert_eq!(TABLES.fields("Superblock"), told(&superblock::FIELDS));
}

#[test]
fn the_control_page_table_is_the_control_page() {
    assert_eq!(TABLES.fields("Control page"), told(&control::FIELDS));
}

#[test]
fn no_two_fields_share_a_byte() {
    for fields in [told(&superblock::FIELDS), told(&control::FIELDS)] {
        for pair in fields.windows(2) {
            assert!(pair[0].1.end <= pair[1].1.start, "{} runs into {}", pair[0].0, pair[1].0);
        }
    }
}

#[test]
fn a_table_that_is_wrong_is_noticed() {
    let mut fields = TABLES.fields("Superblock");
    fields[3].1.start += 8;
    assert_ne!(fields, told(&superblock::FIELDS));
}

#[test]
fn a_device_that_is_no_memory_is_named_so() {
    let null = std::fs::File::open("/dev/null").unwrap();
    let said = crate::device::length(&null).unwrap_err().to_string();
    assert!(said.contains("the device is no memory"), "{said}");
}

//! FORMAT.md and the code say the same.
//!
//! Promise: a field that moves, grows or is renamed on one side only fails here.

use crate::{FORMAT, control, superblock};

/// A table's row: bytes from the start of the region, size, name.
type Row = (usize, usize, String);

/// The rows of the table under `heading`: the first three columns of `| offset | size | name |`.
fn rows_under(heading: &str) -> Vec<Row> {
    let (_, section) = FORMAT.split_once(heading).expect("the heading is there");
    let section = section.split("\n## ").next().expect("a split has a first part");
    section.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let offset = cells.next()?.parse().ok()?;
    let size = cells.next()?.parse().ok()?;
    Some((offset, size, cells.next()?.trim_matches('`').to_owned()))
}

fn rows_of(fields: &[(&str, usize, usize)]) -> Vec<Row> {
    fields.iter().map(|(name, offset, size)| (*offset, *size, (*name).to_owned())).collect()
}

#[test]
fn the_superblock_table_is_the_superblock() {
    assert_eq!(rows_under("## Superblock"), rows_of(&superblock::FIELDS));
}

#[test]
fn the_control_page_table_is_the_control_page() {
    assert_eq!(rows_under("## Control page"), rows_of(&control::FIELDS));
}

#[test]
fn no_two_fields_share_a_byte() {
    for fields in [rows_of(&superblock::FIELDS), rows_of(&control::FIELDS)] {
        for pair in fields.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{} runs into {}", pair[0].2, pair[1].2);
        }
    }
}

#[test]
fn a_table_that_is_wrong_is_noticed() {
    let mut rows = rows_under("## Superblock");
    rows[3].0 += 8;
    assert_ne!(rows, rows_of(&superblock::FIELDS));
}

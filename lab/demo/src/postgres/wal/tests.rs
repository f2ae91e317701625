//! Names of segments.
//!
//! Promise: names are PostgreSQL's own.
//! Never: starts a database.

use super::*;

#[test]
fn a_name_reads_back_as_it_was_written() {
    for name in ["000000010000000000000001", "0000000200000013000000FF"] {
        assert_eq!(Segment::parse(name).unwrap().name(), name);
    }
}

#[test]
fn the_segment_after_the_last_of_a_log_is_the_first_of_the_next() {
    let last = Segment::parse("0000000100000002000000FF").unwrap();
    assert_eq!(last.plus(1).name(), "000000010000000300000000");
}

#[test]
fn other_files_are_no_segments() {
    assert_eq!(Segment::parse("archive_status"), None);
    assert_eq!(Segment::parse("00000002.history"), None);
    assert_eq!(Segment::parse("spare.000000010000000000000001"), None);
}

//! What is read from the statistics, and what is refused.

use super::{Flushes, WRITTEN_FIELD, check, field, flushes};

#[test]
fn the_last_two_fields_count_flushes_and_their_time() {
    let whole =
        "616202 63409 56279666 184875 1537 80819 68703 39922 0 1213 510 743 86 349 115 5841 8";
    assert_eq!(flushes(whole), Some(Flushes { count: 5841, took_ms: 8 }));
    assert_eq!(flushes("616202 63409 56279666"), None);
}

#[test]
fn the_seventh_counts_sectors_written() {
    let whole = "616202 63409 56279666 184875 1537 80819 68703 39922 0";
    assert_eq!(field(whole, WRITTEN_FIELD), Some(68_703));
    assert_eq!(field("616202", WRITTEN_FIELD), None);
}

#[test]
fn a_log_that_did_not_sync_is_refused() {
    assert!(check(0, (1000, "sets"), 1).is_err());
    assert!(check(800, (1000, "sets"), 1).is_err());
    assert!(check(10, (1000, "sets"), 64).is_err());
}

#[test]
fn a_sync_for_each_set_or_for_one_of_each_thread_is_enough() {
    check(1000, (1000, "sets"), 1).unwrap();
    check(16, (1000, "sets"), 64).unwrap();
}

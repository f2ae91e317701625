//! Reading what loads note; canaries of the count of lost transactions.
//!
//! Promise: the samples are pgbench's own output.
//! Never: starts a database.

use super::*;

fn at(at_us: u64, latency_us: u64) -> Acknowledged {
    Acknowledged { client: 0, seq: 1, latency_us, at_us }
}

#[test]
fn a_line_of_the_log_is_an_acknowledged_transaction() {
    let expected =
        Acknowledged { client: 3, seq: 17, latency_us: 912, at_us: 1_700_000_001_000_042 };
    assert_eq!(transaction("3 17 912 0 1700000001 42"), Some(expected));
}

#[test]
fn a_failed_or_torn_line_is_no_acknowledgement() {
    assert_eq!(transaction("3 17 failed 0 1700000001 42"), None);
    assert_eq!(transaction("3 17 912 0 17000"), None);
}

#[test]
fn the_longest_stall_is_the_widest_gap_between_acknowledgements() {
    let acknowledged = vec![at(1_000, 5), at(3_000, 5), at(53_000, 900), at(54_000, 5)];
    let outcome = Outcome::counted(acknowledged, 0, String::new());
    assert!((outcome.longest_stall_ms() - 50.0).abs() < 1e-9);
    assert!((outcome.latency_ms(99) - 0.9).abs() < 1e-9);
}

fn acknowledged(client: u32, seq: u64) -> Acknowledged {
    Acknowledged { client, seq, latency_us: 0, at_us: 0 }
}

#[test]
fn an_acknowledged_transaction_without_a_row_is_counted_as_lost() {
    let present = Present::parse("0|1\n0|2\n0|3\n1\t1").unwrap();
    let all = [acknowledged(0, 1), acknowledged(0, 3), acknowledged(1, 1)];
    assert_eq!(present.missing(&all), 0);
    assert_eq!(present.missing(&[acknowledged(1, 2), acknowledged(2, 1)]), 2);
}

#[test]
fn a_row_that_was_never_acknowledged_is_no_loss() {
    assert_eq!(Present::parse("0|1\n0|2").unwrap().missing(&[acknowledged(0, 1)]), 0);
}

#[test]
fn a_number_missing_below_the_highest_is_a_hole_and_a_missing_end_is_none() {
    assert_eq!(Present::parse("0|1\n0|2\n1|1").unwrap().holes(), 0);
    assert_eq!(Present::parse("0|1\n0|4\n1|2").unwrap().holes(), 3);
}

//! Reading what pgbench writes.
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
fn rate_and_failures_are_read_from_the_report() {
    let report = "number of failed transactions: 2 (0.1%)\n\
                  tps = 8123.456 (without initial connection time)\n";
    assert_eq!(per_second(report), Some(8123.456));
    assert_eq!(failed(report, "pgbench: error: client 3 aborted in command 5"), 3);
}

#[test]
fn the_longest_stall_is_the_widest_gap_between_acknowledgements() {
    let acknowledged = vec![at(1_000, 5), at(3_000, 5), at(53_000, 900), at(54_000, 5)];
    let outcome = Outcome { per_second: 0.0, failed: 0, acknowledged };
    assert!((outcome.longest_stall_ms() - 50.0).abs() < 1e-9);
    assert!((outcome.latency_ms(99) - 0.9).abs() < 1e-9);
}

//! Reading what pgbench reports.
//!
//! Promise: the samples are pgbench's own output.
//! Never: starts a database.

use super::*;

#[test]
fn rate_and_failures_are_read_from_the_report() {
    let report = "number of failed transactions: 2 (0.1%)\n\
                  tps = 8123.456 (without initial connection time)\n";
    assert_eq!(per_second(report), Some(8123.456));
    assert_eq!(failed(report, "pgbench: error: client 3 aborted in command 5"), 3);
}

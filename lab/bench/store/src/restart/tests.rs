//! When a rate is that of before again.

use std::time::Duration;

use super::{recovered_ms, slope};

const TIME: Duration = Duration::from_millis(500);

/// A transaction a millisecond, from then on.
fn ends(from_ms: u64) -> Vec<Duration> {
    (from_ms..500).map(Duration::from_millis).collect()
}

#[test]
fn a_store_that_is_as_fast_at_once_has_recovered_after_the_first_looks() {
    assert_eq!(recovered_ms(&ends(0), 1000.0, TIME), 100.0);
}

#[test]
fn one_that_pauses_has_recovered_that_much_later() {
    assert_eq!(recovered_ms(&ends(200), 1000.0, TIME), 290.0);
}

#[test]
fn one_that_stays_slower_has_not_recovered() {
    assert_eq!(recovered_ms(&ends(0), 2000.0, TIME), 500.0);
    assert_eq!(recovered_ms(&[], 1000.0, TIME), 500.0);
}

#[test]
fn a_slope_is_that_of_the_line_closest_to_all() {
    assert_eq!(slope(&[(10.0, 5.0), (20.0, 7.0), (30.0, 9.0)]), Some(0.2));
    assert_eq!(slope(&[(10.0, 5.0), (1000.0, 5.0)]), Some(0.0));
    assert_eq!(slope(&[(10.0, 5.0)]), None);
    assert_eq!(slope(&[]), None);
}

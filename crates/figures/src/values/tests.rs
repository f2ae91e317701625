//! Arithmetic of the runs.
//!
//! Promise: expected values are worked out by hand.
//! Never: depends on the machine.

use super::*;

#[test]
fn the_median_of_an_even_count_lies_between_the_middle_two() {
    assert!((median(&[4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-9);
    assert!((median(&[9.0, 1.0, 5.0]) - 5.0).abs() < 1e-9);
    assert!(median(&[]).is_nan());
}

#[test]
fn a_percentile_is_a_value_that_occurred() {
    let hundred: Vec<u64> = (1..=100).collect();
    assert_eq!(percentile(&hundred, 99), 99);
    assert_eq!(percentile(&hundred, 50), 50);
    assert_eq!(percentile(&[7], 99), 7);
    assert_eq!(percentile(&[], 99), 0);
}

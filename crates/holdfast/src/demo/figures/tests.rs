//! Arithmetic of the figures.
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

#[test]
fn dates_are_right_around_leap_days() {
    assert_eq!(utc(0), "1970-01-01T00:00:00Z");
    assert_eq!(utc(951_782_399), "2000-02-28T23:59:59Z");
    assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
    assert_eq!(utc(1_767_225_599), "2025-12-31T23:59:59Z");
}

#[test]
fn a_goal_is_met_from_its_own_side() {
    let figure = |better, goal| Figure::of("x", "ratio", better, vec![2.0]).against(goal, "peer");
    assert_eq!(figure(Better::Higher, 1.5).met(), Some(true));
    assert_eq!(figure(Better::Lower, 1.5).met(), Some(false));
    assert_eq!(Figure::of("x", "ratio", Better::Lower, vec![2.0]).met(), None);
}

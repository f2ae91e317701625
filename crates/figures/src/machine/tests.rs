//! Dates.
//!
//! Promise: expected values are worked out by hand.
//! Never: depends on the machine.

use super::*;

#[test]
fn dates_are_right_around_leap_days() {
    assert_eq!(utc(0), "1970-01-01T00:00:00Z");
    assert_eq!(utc(951_782_399), "2000-02-28T23:59:59Z");
    assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
    assert_eq!(utc(1_767_225_599), "2025-12-31T23:59:59Z");
}

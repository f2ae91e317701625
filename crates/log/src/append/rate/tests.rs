//! What the device's answers make of rate and depth.

use super::*;

/// The rate after so many flights, one behind the other, of 4 KiB and `delay_ns` each.
fn after(flights: u32, delay_ns: u64) -> (Rate, u64) {
    let (mut rate, mut now_ns, mut bytes_per_s) = (Rate::default(), 0, 0);
    for _ in 0..flights {
        rate.begin(now_ns);
        bytes_per_s = rate.end(4096, now_ns, now_ns + delay_ns);
        now_ns += delay_ns + 1_000_000; // idle in between
    }
    (rate, bytes_per_s)
}

#[test]
fn the_rate_counts_only_the_time_in_which_something_flies() {
    assert_eq!(after(100, 1_000_000).1, 4_096_000);
}

#[test]
fn flights_that_overlap_share_their_time() {
    let mut rate = Rate::default();
    rate.begin(0);
    rate.begin(500);
    let _first = rate.end(1000, 0, 1000);
    assert_eq!(rate.end(1000, 500, 2000), 1_000_000_000);
}

#[test]
fn a_quick_device_is_asked_one_thing_at_a_time_and_a_slow_one_many() {
    assert_eq!(after(200, 50_000).0.depth(), 1);
    assert_eq!(after(200, 450_000).0.depth(), 3);
    assert_eq!(after(200, 10_000_000).0.depth(), FLIGHTS_MAX);
}

#[test]
fn a_busy_processor_is_not_taken_for_a_slow_device() {
    let mut rate = Rate::default();
    for flight in 0..200 {
        let took_ns = if flight % 10 == 0 { 60_000 } else { 900_000 };
        rate.begin(0);
        let _bytes_per_s = rate.end(4096, 0, took_ns);
    }
    assert_eq!(rate.depth(), 1);
}

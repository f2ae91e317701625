//! The rule, look by look.

use super::*;

/// Looks every second at what `at` says, and returns what stood still at each.
fn looks(count: u64, at: impl Fn(u64) -> Look) -> Vec<usize> {
    let (begun, mut marks) = (Instant::now(), Marks::default());
    let one = |second| marks.look(at(second), begun + Duration::from_secs(second)).len();
    (0..count).map(one).collect()
}

#[test]
fn an_idle_volume_does_not_stand_still_however_long() {
    let idle = Look { released: 100, durable: 5000, tail: 5000, ..Look::default() };
    assert_eq!(looks(100, |_| idle), vec![0; 100]);
}

#[test]
fn a_drain_stands_still_once_something_has_waited_for_its_bound() {
    let seen = looks(8, |_| Look { released: 0, durable: 0, tail: 4096, ..Look::default() });
    assert_eq!(seen, [0, 0, 0, 0, 0, 1, 1, 1]);
    let busy = |second| Look { released: 0, durable: second, tail: 4096, ..Look::default() };
    assert_eq!(looks(20, busy), vec![0; 20]);
}

#[test]
fn a_drain_that_had_nothing_to_do_has_stood_for_no_time() {
    let wakes = |second| Look { durable: 100, tail: 100 + second / 10, ..Look::default() };
    assert_eq!(looks(16, wakes).iter().sum::<usize>(), 1);
}

#[test]
fn a_cleaner_stands_still_when_changes_come_and_none_goes_home() {
    let hangs = |second: u64| {
        let tail = (second + 1) << 20;
        Look { released: 0, durable: tail, tail, ..Look::default() }
    };
    assert_eq!(looks(8, hangs), [0, 0, 0, 0, 0, 1, 1, 1]);
    let works = |second: u64| Look { released: second << 20, ..hangs(second) };
    assert_eq!(looks(20, works), vec![0; 20]);
}

#[test]
fn a_cleaner_that_had_nothing_to_do_has_stood_for_no_time() {
    let wakes = |second: u64| {
        let tail = if second < 20 { 4096 } else { 1 << 20 };
        Look { released: 0, durable: tail, tail, ..Look::default() }
    };
    assert_eq!(looks(24, wakes), [0; 24]);
}

#[test]
fn a_home_that_fails_is_told_with_its_reason_at_once_and_until_it_does_not() {
    let fails = |second| Look { home_errno: (second < 3).then_some(28), ..Look::default() };
    assert_eq!(looks(5, fails), [1, 1, 1, 0, 0]);
    let told = Marks::default().look(fails(0), Instant::now());
    assert!(told[0].what.contains("No space left"), "{told:?}");
}

#[test]
fn a_log_whose_disk_is_full_is_told_at_once_and_nothing_else_is_blamed() {
    let full =
        |second| Look { log_errno: Some(28), home_errno: Some(5), tail: 1 << 20, ..busy(second) };
    assert_eq!(looks(9, full), [1; 9]);
    let told = Marks::default().look(full(0), Instant::now());
    assert!(
        told[0].what.contains("the log's disk") && told[0].what.contains("No space"),
        "{told:?}"
    );
    let idle = |_| Look { log_errno: Some(28), durable: 4096, tail: 4096, ..Look::default() };
    assert_eq!(looks(9, idle), [0; 9]);
}

fn busy(second: u64) -> Look {
    Look { durable: second, ..Look::default() }
}

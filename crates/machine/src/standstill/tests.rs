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

const RING: u64 = 8 << 20;

/// A full ring, of which so much comes home in a second, while somebody waits for room.
fn full(home_rate: u64) -> impl Fn(u64) -> Look {
    move |second| {
        let (released, stalls) = (second * home_rate, second * 20);
        let tail = released + RING - 4096;
        Look { released, durable: tail, tail, stalls, ring_bytes: RING, ..Look::default() }
    }
}

/// What is told at the last of so many looks.
fn told(count: u64, at: impl Fn(u64) -> Look) -> Vec<String> {
    let (begun, mut marks) = (Instant::now(), Marks::default());
    let one = |second| marks.look(at(second), begun + Duration::from_secs(second));
    (0..count).map(one).last().into_iter().flatten().map(|it| it.what).collect()
}

#[test]
fn a_full_ring_that_changes_wait_for_is_told_while_little_of_it_comes_home() {
    // The first look knows of nobody who waits.
    assert_eq!(looks(9, full(20_000)), [0, 0, 0, 0, 0, 0, 1, 1, 1]);
    let said = told(12, full(20_000));
    assert!(said[0].contains("ring is full") && said[0].contains("wait for room"), "{said:?}");
    assert!(looks(40, full(20_000))[6..].iter().all(|count| *count == 1), "without a gap");
    let ends = |second: u64| Look { stalls: second.min(10), ..full(20_000)(second) };
    assert_eq!(looks(14, ends)[9..], [1, 1, 0, 0, 0]);
}

#[test]
fn a_ring_that_is_full_because_much_is_written_does_not_stand_still() {
    assert_eq!(looks(40, full(1 << 20)), [0; 40]);
}

#[test]
fn changes_that_wait_for_the_drain_do_not_make_the_ring_full() {
    let waits = |second: u64| {
        let (released, tail) = (second * 20_000, second * 20_000 + RING / 4);
        Look { released, durable: released, tail, ..full(20_000)(second) }
    };
    assert_eq!(looks(40, waits), [0; 40]);
}

#[test]
fn a_cleaner_or_home_that_does_nothing_is_told_with_the_ring_that_it_fills() {
    let fills = |second: u64| match second {
        0 => Look { durable: 0, tail: 0, ..full(0)(0) },
        _ => full(0)(second),
    };
    let said = told(12, fills);
    assert!(said[0].contains("nothing is applied") && said[0].contains("ring is full"), "{said:?}");
    assert_eq!(said.len(), 1, "{said:?}");
    let said = told(12, |second| Look { home_errno: Some(28), ..full(0)(second) });
    assert!(said[0].contains("No space left") && said[0].contains("ring is full"), "{said:?}");
    let alone = |second| Look { home_errno: Some(28), stalls: 0, ..full(0)(second) };
    assert!(!told(12, alone)[0].contains("ring"));
}

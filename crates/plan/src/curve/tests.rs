//! What a curve says between its points.

use super::*;

fn curve(points: &[(u64, f64, f64)]) -> Curve {
    let steady = |request_cycles, recovery_cycles| Steady {
        paging_cycles: request_cycles,
        checkpoint_cycles: 0.0,
        recovery_cycles,
        recovery_mean_cycles: 0.0,
    };
    let point = |(interval, request_cycles, recovery_cycles): &(u64, f64, f64)| Point {
        interval: *interval,
        steady: steady(*request_cycles, *recovery_cycles),
    };
    Curve { without_checkpoints: steady(0.0, f64::MAX), points: points.iter().map(point).collect() }
}

#[test]
fn the_least_request_time_within_a_limit_lies_on_the_line_between_two_intervals() {
    let curve = curve(&[(400, 10.0, 100.0), (200, 20.0, 60.0), (100, 30.0, 20.0)]);
    let best = curve.within(80.0).unwrap();
    assert_eq!((best.interval, best.request_cycles, best.recovery_cycles), (300.0, 15.0, 80.0));
    assert_eq!(curve.within(500.0).unwrap().request_cycles, 10.0);
    assert_eq!(curve.within(19.0), None);
}

#[test]
fn a_shorter_interval_is_best_where_longer_ones_cost_more() {
    let curve = curve(&[(400, 10.0, 100.0), (200, 20.0, 60.0), (100, 15.0, 20.0)]);
    assert_eq!(curve.within(70.0).unwrap().request_cycles, 15.0);
}

#[test]
fn the_crossover_is_where_two_curves_meet() {
    let without = curve(&[(4, 10.0, 1000.0), (1, 30.0, 200.0)]);
    let with = curve(&[(4, 20.0, 300.0), (1, 21.0, 100.0)]);
    let crossover = without.crossover(&with).unwrap();
    assert!((crossover - 600.0).abs() < 2.0, "{crossover}");
    let dearer = curve(&[(4, 25.0, 900.0), (1, 31.0, 100.0)]);
    assert_eq!(dearer.crossover(&with), None);
}

#[test]
fn a_curve_goes_from_long_intervals_to_short_ones() {
    let configuration = crate::paper::Named::Large.configuration();
    let effort = Effort { pages_max: 512, settling: 1, measured: 1, step: 2.0 };
    let curve = Curve::of(&configuration, effort, |_, _| {});
    assert_eq!(curve.points[0].interval, 2_048_000);
    assert!(curve.points.is_sorted_by(|one, next| one.interval > next.interval));
    assert!(curve.points.last().unwrap().interval < 256_000 / 90);
}

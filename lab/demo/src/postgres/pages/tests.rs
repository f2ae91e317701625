//! Figures from samples.
//!
//! Promise: numbers small enough to work out by hand.
//! Never: starts a database.

use super::*;

fn sample(value: &'static str, per_second: f64, wal_bytes: f64) -> Sample {
    Sample { value, per_second, wal_bytes }
}

#[test]
fn off_is_compared_with_on_of_the_same_repetition() {
    let all = figures(&[
        sample("on", 100.0, 8_000.0),
        sample("off", 300.0, 400.0),
        sample("off", 400.0, 500.0),
        sample("on", 200.0, 5_000.0),
    ]);
    let of = |id: &str| {
        let id = format!("postgres.full_page_writes.{id}");
        all.iter().find(|figure| figure.id == id).unwrap()
    };
    assert_eq!(of("tps_off_over_on").runs, [3.0, 2.0]);
    assert_eq!(of("wal_bytes_off_over_on").runs, [0.05, 0.1]);
    let shown = panels().into_iter().flat_map(|panel| panel.bars);
    assert!(shown.into_iter().all(|bar| all.iter().any(|figure| figure.id == bar.id)));
}

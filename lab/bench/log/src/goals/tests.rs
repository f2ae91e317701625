//! What a ratio is taken against.

use holdfast_bench_common::ledger::Ledger;
use holdfast_figures::Figure;

use super::judge;
use crate::peers::{self, Kind};

/// A ledger of two repetitions of one load.
fn ledger(rates: &[(&str, [f64; 2])]) -> Ledger {
    let mut ledger = Ledger::default();
    for run in 0..2 {
        for (name, runs) in rates {
            ledger.higher(format!("log.sync.t8.{name}.records_per_s"), "records/s", runs[run]);
        }
    }
    ledger
}

fn figure(ledger: &Ledger, id: &str) -> Option<Figure> {
    let kinds: Vec<&'static Kind> = peers::all().collect();
    judge(ledger, &kinds).into_iter().find(|figure| figure.id == id)
}

#[test]
fn the_best_peer_is_the_one_with_the_best_median_and_a_limit_is_none() {
    let rates = [
        ("holdfast", [30.0, 40.0]),
        ("wal-db", [12.0, 6.0]),
        ("okaywal", [10.0, 20.0]),
        ("device", [1000.0, 1000.0]),
    ];
    let found = figure(&ledger(&rates), "log.sync.t8.over_best_peer").unwrap();
    assert_eq!(found.runs, [3.0, 2.0]);
    assert_eq!(found.goal, Some(1.5));
    assert_eq!(found.class.as_deref(), Some("Disk"));
}

#[test]
fn without_a_peer_there_is_no_ratio() {
    let alone = ledger(&[("holdfast", [30.0, 40.0])]);
    assert!(figure(&alone, "log.sync.t8.over_best_peer").is_none());
}

#[test]
fn what_encryption_with_parity_costs_is_the_worse_of_its_medians() {
    let mut ledger = Ledger::default();
    let rates = [("t1.plain", 100.0), ("t1.sealed_parity", 95.0)];
    for (name, rate) in
        [("t32.plain", 200.0), ("t32.sealed_parity", 150.0)].into_iter().chain(rates)
    {
        ledger.higher(format!("log.sealed_parity.{name}.records_per_s"), "records/s", rate);
    }
    let worst = figure(&ledger, "log.sealed_parity.loss").unwrap();
    assert_eq!((worst.value, worst.goal, worst.met()), (0.25, Some(0.1), Some(false)));
    assert!((figure(&ledger, "log.sealed_parity.t1.loss").unwrap().value - 0.05).abs() < 1e-9);
}

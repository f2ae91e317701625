//! What a ratio is taken against.

use holdfast_figures::Figure;

use super::judge;
use crate::ledger::Ledger;
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
fn the_best_peer_is_looked_for_in_every_repetition_and_a_limit_is_none() {
    let rates = [
        ("holdfast", [30.0, 40.0]),
        ("wal-db", [10.0, 5.0]),
        ("okaywal", [5.0, 20.0]),
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

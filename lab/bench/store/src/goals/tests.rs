//! What a ratio is taken against.

use holdfast_bench_common::ledger::Ledger;
use holdfast_figures::Figure;

use super::judge;
use crate::peers::{self, Kind};

fn figure(rates: &[(&str, [f64; 2])], id: &str) -> Option<Figure> {
    let mut ledger = Ledger::default();
    for run in 0..2 {
        for (name, runs) in rates {
            ledger.higher(format!("store.{name}"), "tx/s", runs[run]);
        }
    }
    let kinds: Vec<&'static Kind> = peers::all().collect();
    judge(&ledger, &kinds).into_iter().find(|figure| figure.id == id)
}

#[test]
fn durable_transactions_stand_beside_the_best_of_all_peers() {
    let rates = [
        ("durable.t2.holdfast.tx_per_s", [30.0, 40.0]),
        ("durable.t2.fjall.tx_per_s", [12.0, 6.0]),
        ("durable.t2.lmdb.tx_per_s", [10.0, 20.0]),
    ];
    let found = figure(&rates, "store.durable.over_best_peer").unwrap();
    assert_eq!((&found.runs[..], found.goal), (&[3.0, 2.0][..], Some(1.2)));
    assert_eq!(found.class.as_deref(), Some("Disk"));
}

#[test]
fn a_second_of_a_processor_stands_beside_the_best_that_has_a_log() {
    let rates = [
        ("nondurable.holdfast.tx_per_cpu_s", [30.0, 40.0]),
        ("nondurable.fjall.tx_per_cpu_s", [10.0, 20.0]),
        ("nondurable.lmdb.tx_per_cpu_s", [90.0, 90.0]),
    ];
    let found = figure(&rates, "store.nondurable.over_best_log_peer").unwrap();
    assert_eq!((&found.runs[..], found.goal), (&[3.0, 2.0][..], Some(2.0)));
    assert_eq!(found.class.as_deref(), Some("Memory"));
}

#[test]
fn what_is_asked_of_ours_alone_has_a_name_and_a_goal_of_its_own() {
    let rates = [("restart.holdfast.first_tx_ms", [30.0, 40.0])];
    let found = figure(&rates, "store.restart.first_tx_ms").unwrap();
    assert_eq!((found.value, found.goal), (35.0, Some(50.0)));
    assert!(figure(&rates, "store.durable.over_best_peer").is_none());
}

#[test]
fn what_writers_lose_to_scans_by_snapshots_is_asked_with_the_log_on_disk() {
    let rates = [
        ("snapshot_scan.disk.snapshots.loss", [0.05, 0.07]),
        ("snapshot_scan.memory.snapshots.loss", [0.5, 0.7]),
    ];
    let found = figure(&rates, "store.snapshot_scan.writer_loss").unwrap();
    assert!((found.value - 0.06).abs() < 1e-9 && found.goal == Some(0.1));
    assert_eq!(found.class.as_deref(), Some("Disk"));
}

#[test]
fn a_slow_round_says_nothing_about_an_interval() {
    let of = |rates: [f64; 6]| {
        let intervals = ["1ms", "10ms", "100ms", "1000ms", "10000ms", "none"];
        let mut ledger = Ledger::default();
        for slowness in [1.0, 2.0, 1.0] {
            for (log, kind) in [("disk", "decoupled"), ("memory", "decoupled")] {
                for (rate, every) in rates.iter().zip(intervals) {
                    let id = format!("store.flat.{log}.{kind}.{every}.tx_per_s");
                    ledger.higher(id, "tx/s", rate / slowness);
                }
            }
        }
        let figures = judge(&ledger, &peers::all().collect::<Vec<_>>());
        figures.into_iter().find(|figure| figure.id == "store.flatness.decoupled").unwrap().value
    };
    assert!((of([9.0; 6]) - 1.0).abs() < 1e-9);
    assert!((of([9.0, 9.0, 9.0, 6.0, 9.0, 9.0]) - 2.0 / 3.0).abs() < 1e-9);
}

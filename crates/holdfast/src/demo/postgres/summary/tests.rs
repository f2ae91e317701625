//! Figures from samples.
//!
//! Promise: numbers small enough to work out by hand.
//! Never: starts a database.

use super::*;

const CLASS: &str = "memory, must_survive = [process]";

fn sample(setting: Setting, repetition: u32, per_second: f64, p99_ms: f64) -> Sample {
    Sample { setting, clients: 8, repetition, per_second, p50_ms: 1.0, p99_ms }
}

fn kill(victim: Victim, lost: u64, stall_ms: f64) -> Kill {
    let complaint = String::new();
    Kill { victim, acknowledged: 10, lost, failed: 0, stall_ms, complaint }
}

fn samples() -> Vec<Sample> {
    vec![
        sample(Setting::Holdfast, 1, 900.0, 2.0),
        sample(Setting::Sync, 0, 100.0, 50.0),
        sample(Setting::Holdfast, 0, 2_000.0, 1.0),
        sample(Setting::Sync, 1, 50.0, 40.0),
    ]
}

#[test]
fn a_ratio_is_taken_within_its_repetition() {
    let all = figures(&samples(), &[], 7, CLASS);
    let ratio = all.get("postgres.c8.holdfast_over_sync").unwrap();
    assert_eq!(ratio.runs, [20.0, 18.0]);
    assert!((ratio.value - 19.0).abs() < 1e-9);
    assert_eq!(ratio.met(), Some(true));
}

#[test]
fn one_lost_transaction_misses_the_goal() {
    let kills = [kill(Victim::Server, 0, 900.0), kill(Victim::FrontEnd, 1, 70.0)];
    let all = figures(&samples(), &kills, 7, CLASS);
    assert_eq!(all.get("postgres.kills.lost").unwrap().met(), Some(false));
    assert!((all.get("postgres.kills.front_end.stall_max_ms").unwrap().value - 70.0).abs() < 1e-9);
    assert!(table(&all).contains("MISSED"));
}

#[test]
fn the_table_says_what_an_acknowledgement_meant() {
    assert!(table(&figures(&samples(), &[], 7, CLASS)).contains("must_survive"));
}

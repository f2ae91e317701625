//! Figures from samples.
//!
//! Promise: numbers small enough to work out by hand.
//! Never: starts a database.

use super::*;
use crate::postgres::Postgres;
use crate::subject::Database;

const SUBJECT: Subject = Postgres::SUBJECT;

fn sample(setting: Setting, repetition: u32, per_second: f64, p99_ms: f64) -> Sample {
    Sample { setting, case: "c8", repetition, per_second, p50_ms: 1.0, p99_ms }
}

fn kill(victim: Victim, lost: u64, stall_ms: f64) -> Kill {
    let complaint = String::new();
    Kill { victim, acknowledged: 10, lost, failed: 0, stall_ms, complaint }
}

fn shown(kills: &[Kill]) -> Figures {
    let samples = [
        sample(Setting::HOLDFAST, 1, 900.0, 2.0),
        sample(Setting::Sync, 0, 100.0, 50.0),
        sample(Setting::HOLDFAST, 0, 2_000.0, 1.0),
        sample(Setting::Sync, 1, 50.0, 40.0),
    ];
    let mut all = Figures::here("postgres", "a disk", "memory, must_survive = [process]");
    all.figures = figures(&SUBJECT, &samples, kills, 7);
    all
}

#[test]
fn a_ratio_is_taken_within_its_repetition() {
    let all = shown(&[]);
    let ratio = all.get("postgres.c8.holdfast_over_sync").unwrap();
    assert_eq!(ratio.runs, [20.0, 18.0]);
    assert!((ratio.value - 19.0).abs() < 1e-9);
    assert_eq!(ratio.met(), Some(true));
}

#[test]
fn one_lost_transaction_misses_the_goal() {
    let all =
        shown(&[kill(Victim::Database, 0, 900.0), kill(Victim::Part(Part::FrontEnd), 1, 70.0)]);
    assert_eq!(all.get("postgres.kills.lost").unwrap().met(), Some(false));
    assert!((all.get("postgres.kills.front_end.stall_max_ms").unwrap().value - 70.0).abs() < 1e-9);
    assert!(goals_table(&all).contains("MISSED"));
    assert!(tables(&SUBJECT, &all).contains("1 lost"));
}

#[test]
fn the_table_says_what_an_acknowledgement_meant() {
    assert!(goals_table(&shown(&[])).contains("must_survive"));
}

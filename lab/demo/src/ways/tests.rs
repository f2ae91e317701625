//! Figures and words of the comparison.
//!
//! Promise: numbers small enough to work out by hand.
//! Never: starts a database.

use super::*;
use crate::measure::Sample;

fn sample(setting: Setting, case: &'static str, repetition: u32, per_second: f64) -> Sample {
    Sample { setting, case, repetition, per_second, p50_ms: 1.0, p99_ms: 2.0 }
}

fn kill(victim: Victim, stall_ms: f64) -> Kill {
    let complaint = String::new();
    Kill { victim, acknowledged: 10, lost: 0, failed: 0, stall_ms, complaint }
}

fn shown(queue: &[Kill]) -> Figures {
    let samples = [
        sample(DIRECT, "c8", 0, 1_000.0),
        sample(QUEUE, "c8", 0, 800.0),
        sample(QUEUE, "c8", 1, 450.0),
        sample(DIRECT, "c8", 1, 500.0),
    ];
    let mut all = Figures::here("ways", "a disk", "memory");
    all.figures = summary::figures(&SUBJECT, &samples, &[], 3);
    all.figures.extend(kill_figures(Way::Direct, &[kill(Victim::Database, 900.0)]));
    all.figures.extend(kill_figures(Way::Queue, queue));
    all
}

#[test]
fn the_queue_is_compared_with_the_direct_way_of_the_same_repetition() {
    let all = shown(&[]);
    let ratio = all.get("ways.c8.queue_over_direct").unwrap();
    assert_eq!(ratio.runs, [0.8, 0.9]);
    assert_eq!(ratio.met(), None);
    assert_eq!(all.get("ways.c8.direct.tps").unwrap().runs, [1_000.0, 500.0]);
}

#[test]
fn a_stall_is_the_longest_of_the_front_end_and_the_server() {
    let (front_end, server) = (Victim::Part(Part::FrontEnd), Victim::Part(Part::Server));
    let all = shown(&[kill(front_end, 70.0), kill(server, 90.0), kill(Victim::Database, 900.0)]);
    let value = |id: &str| all.get(&format!("ways.queue.kills.{id}")).unwrap().value;
    let values = ["count", "stall_max_ms", "front_end.stall_max_ms", "server.count"].map(value);
    assert!(values.iter().zip([3.0, 90.0, 70.0, 1.0]).all(|(is, must)| (is - must).abs() < 1e-9));
    assert!(all.get("ways.direct.kills.server.count").is_none());
}

#[test]
fn a_transaction_that_fails_by_the_queue_misses_the_goal_and_is_told() {
    let failed = Kill { failed: 4, ..kill(Victim::Part(Part::Server), 90.0) };
    let all = shown(&[failed]);
    assert_eq!(all.get("ways.queue.kills.failed").unwrap().met(), Some(false));
    assert_eq!(all.get("ways.direct.kills.failed").unwrap().met(), Some(true));
    assert!(
        tables(&all)
            .contains("way queue: 1 kills under load: 10 transactions acknowledged, 0 lost, 4")
    );
}

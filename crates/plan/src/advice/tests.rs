//! Advice for small databases, where it is fast.

use super::*;
use crate::configuration::{Load, Mix};
use crate::paper::Named;

/// What two runs may differ by: 1 in 50.
const CHANCE: f64 = 0.02;

fn configuration(memory_pages: u64, database_pages: u64) -> Configuration {
    let load = Load::Mix(Mix::paper(database_pages));
    Configuration { memory_pages, load, ..Named::Large.configuration() }
}

fn advice(memory_pages: u64, database_pages: u64, recovery_pages: f64) -> Advice {
    let configuration = configuration(memory_pages, database_pages);
    let limit = recovery_pages * configuration.machine.disk_page_cycles();
    advise(&configuration, limit, |_, _| {}).unwrap()
}

#[test]
fn more_memory_never_makes_what_is_advised_slower() {
    for recovery_pages in [200.0, 900.0] {
        let mut last = f64::MAX;
        for memory_pages in [500, 1000, 1500, 2000, 2500] {
            let advice = advice(memory_pages, 4000, recovery_pages);
            let cycles = advice.best.request_cycles;
            assert!(cycles <= last * (1.0 + CHANCE), "{memory_pages}: {cycles} after {last}");
            last = cycles;
        }
    }
}

#[test]
fn a_longer_recovery_never_makes_what_is_advised_slower() {
    let mut last = f64::MAX;
    for recovery_pages in [50.0, 200.0, 900.0, 2000.0] {
        let cycles = advice(2000, 4000, recovery_pages).best.request_cycles;
        assert!(cycles <= last, "{recovery_pages}: {cycles} after {last}");
        last = cycles;
    }
}

#[test]
fn what_is_advised_keeps_the_limit_and_is_the_best_of_what_was_tried() {
    let advice = advice(2000, 4000, 500.0);
    assert!(advice.best.recovery_cycles <= 500.0 * 32_768.0);
    let others = advice.tried.iter().filter_map(|tried| tried.best);
    let least = others.map(|best| best.request_cycles).fold(f64::MAX, f64::min);
    assert!(advice.best.request_cycles <= least * (1.0 + SAME));
    assert!(advice.tried.is_sorted_by_key(|tried| tried.durable_pages));
    assert_eq!(advice.tried[0].durable_pages, 0);
}

#[test]
fn short_recoveries_need_durable_memory_and_long_ones_none() {
    // The paper's conclusion.
    assert!(advice(2000, 4000, 100.0).durable_pages > 500);
    assert_eq!(advice(2000, 4000, 1e6).durable_pages, 0);
}

#[test]
fn memory_that_a_database_does_not_need_is_worth_reserving() {
    // The paper's example: 400 mbytes of database in 512 of memory.
    let advice = advice(5120, 4000, 500.0);
    let none = advice.tried[0].best.unwrap().request_cycles;
    let rest = advice.tried.iter().find(|tried| tried.durable_pages == 1120);
    assert!(rest.unwrap().best.unwrap().request_cycles < none);
    assert!(advice.durable_pages >= 1120 - 320);
}

#[test]
fn a_limit_that_no_size_keeps_is_told_with_the_shortest_recovery_there_is() {
    let none = advise(&configuration(2000, 4000), 1.0, |_, _| {}).unwrap_err();
    assert!(none.shortest_cycles > 1.0);
    let advice = advise(&configuration(2000, 4000), none.shortest_cycles, |_, _| {});
    assert!(advice.is_ok());
}

#[test]
fn progress_ends_where_it_said() {
    let mut seen = Vec::new();
    let configuration = configuration(500, 1000);
    let limit = 100.0 * configuration.machine.disk_page_cycles();
    advise(&configuration, limit, |done, all| seen.push((done, all))).unwrap();
    assert!(seen.is_sorted() && seen.iter().all(|(done, all)| done <= all));
}

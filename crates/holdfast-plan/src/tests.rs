//! The paper's numbers, by fewer pages than it had.

use std::sync::{Arc, OnceLock};

use crate::paper::{Compared, Named, Results, compare, run};
use crate::*;

/// The paper's four configurations, simulated once for all tests.
fn results() -> &'static [Results] {
    static RESULTS: OnceLock<Vec<Results>> = OnceLock::new();
    RESULTS.get_or_init(|| Named::ALL.map(|named| run(named, Effort::FAST, |_, _| {})).into())
}

fn of(named: Named) -> &'static Results {
    results().iter().find(|it| it.named == named).unwrap()
}

/// Numbers of the paper that ours are not within a twentieth of, or miss by chance.
fn far(all: &[Compared]) -> Vec<&'static str> {
    all.iter().filter(|it| it.difference().abs() > 0.05).map(|it| it.id).collect()
}

#[test]
fn the_papers_numbers_come_out_and_what_differs_is_explained() {
    let all = compare(results());
    for row in &all {
        let difference = row.difference();
        assert!(difference.abs() < 0.2, "{}: {difference}", row.id);
        assert!(difference.abs() < 0.05 || !row.because.is_empty(), "{}: {difference}", row.id);
    }
    let close = ["small.full.gigacycles", "large.full.gigacycles", "large.lowest.cycles"];
    assert!(close.iter().all(|id| !far(&all).contains(id)), "{:?}", far(&all));
}

#[test]
fn a_number_that_is_far_from_the_papers_is_noticed() {
    let mut results = results().to_vec();
    results[2].curve.without_checkpoints.paging_cycles *= 1.1;
    assert!(far(&compare(&results)).contains(&"large.lowest.cycles"));
}

#[test]
fn the_papers_request_time_is_that_of_its_pages_on_disk() {
    // What `paper::compare` says of the number that ours is above.
    let requests = 3_000_000;
    let configuration = Named::LargeDurable.configuration();
    let (paging, _) = simulate(&configuration, None, requests);
    let disk = Traffic { durable_reads: 0, durable_writes: 0, ..paging };
    let cycles = configuration.machine.cycles(disk) / requests as f64;
    assert!((cycles / 11_125.0 - 1.0).abs() < 0.02, "{cycles}");
}

#[test]
fn a_small_database_is_better_off_with_durable_memory_whatever_the_limit() {
    // Figure 3.
    let (without, with) = (&of(Named::Small).curve, &of(Named::SmallDurable).curve);
    assert_eq!(without.crossover(with), None);
}

#[test]
fn a_large_database_is_better_off_without_it_if_recovery_may_take_long() {
    // Figure 4.
    let (without, with) = (&of(Named::Large).curve, &of(Named::LargeDurable).curve);
    let better = |limit: f64| {
        without.within(limit).unwrap().request_cycles < with.within(limit).unwrap().request_cycles
    };
    assert_eq!([500e6, 1000e6, 2200e6].map(better), [false, false, true]);
}

#[test]
fn with_durable_memory_requests_are_as_good_as_ever_at_once() {
    for warm_up in &of(Named::LargeDurable).warm_ups {
        assert_eq!(warm_up.as_steady.unwrap().requests, 0.0);
    }
}

#[test]
fn without_it_requests_are_better_than_ever_while_the_rest_of_memory_fills() {
    for warm_up in &of(Named::Large).warm_ups {
        let (as_steady, full) = (warm_up.as_steady.unwrap(), warm_up.full.unwrap());
        let requests = full.requests - as_steady.requests;
        let cycles = (full.cycles - as_steady.cycles) / requests;
        let steady = warm_up.steady.paging_cycles;
        assert!(cycles < steady && cycles > 0.5 * steady, "{cycles}, steady {steady}");
    }
}

#[test]
fn the_two_strategies_for_cold_pages_hardly_differ() {
    let first = Named::LargeDurable.configuration();
    let second = Configuration { cold_pages: ColdPages::ToDurable, ..first.clone() };
    let cycles = |it: &Configuration| steady(it, Some(100_000), Effort::FAST).request_cycles();
    let difference = cycles(&second) / cycles(&first) - 1.0;
    assert!(difference.abs() < 0.05, "{difference}");
}

#[test]
fn fewer_pages_give_the_same_costs() {
    let few = Effort { pages_max: 4096, settling: 8, measured: 64, step: 2.0 };
    let many = Effort { pages_max: 65_536, ..few };
    for named in Named::ALL {
        let cost = |effort| {
            let steady = steady(&named.configuration(), Some(100_000), effort);
            (steady.request_cycles(), steady.recovery_mean_cycles)
        };
        let (few, many) = (cost(few), cost(many));
        assert!((few.0 / many.0 - 1.0).abs() < 0.03, "{named:?}: {few:?} {many:?}");
        assert!((few.1 / many.1 - 1.0).abs() < 0.05, "{named:?}: {few:?} {many:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let configuration = Named::LargeDurable.configuration();
    let other = Configuration { seed: 2, ..configuration.clone() };
    let run = |it: &Configuration| simulate(it, Some(10_000), 200_000);
    assert_eq!(run(&configuration), run(&configuration));
    assert_ne!(run(&configuration), run(&other));
}

#[test]
fn a_trace_of_a_mix_costs_what_the_mix_costs() {
    let mix = Mix::paper(2000);
    let drawn = Configuration {
        memory_pages: 1000,
        durable_pages: 300,
        load: Load::Mix(mix),
        ..Named::Large.configuration()
    };
    let mut requests = requests::Requests::new(&drawn.load, 9);
    let lines = (0..200_000).map(|_| {
        let Request { page, is_write } = requests.next();
        format!("{} {page}\n", if is_write { "w" } else { "r" })
    });
    let trace = Trace::read(lines.collect::<String>().as_bytes()).unwrap();
    let replayed = Configuration { load: Load::Trace(Arc::new(trace)), ..drawn.clone() };
    assert_eq!(replayed.check(), Ok(()));
    let effort = Effort { pages_max: 2000, settling: 8, measured: 100, step: 2.0 };
    let cycles = |it: &Configuration| steady(it, Some(1000), effort).request_cycles();
    let difference = cycles(&replayed) / cycles(&drawn) - 1.0;
    assert!(difference.abs() < 0.03, "{difference}");
}

#[test]
fn a_page_that_nobody_asks_for_does_not_keep_a_warm_up_for_ever() {
    let mix = Mix { hot_requests: 1.0 - 1e-9, ..Mix::paper(1000) };
    let small = Configuration { load: Load::Mix(mix), ..Named::Small.configuration() };
    assert_eq!(warm_up(&small, Effort::FAST).full, None);
}

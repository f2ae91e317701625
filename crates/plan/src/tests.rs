//! The paper's numbers, and what the documents say of them.

use std::fmt::Write;
use std::fs;
use std::sync::{Arc, OnceLock};

use holdfast_figures::Figures;

use crate::paper::{Compared, Named, Results, compare, of_means, run};
use crate::*;

/// The paper's four configurations, simulated once for all tests.
fn results() -> &'static [Results] {
    static RESULTS: OnceLock<Vec<Results>> = OnceLock::new();
    RESULTS.get_or_init(|| Named::ALL.map(|named| run(named, Effort::FULL, |_, _| {})).into())
}

fn of(named: Named) -> &'static Results {
    results().iter().find(|it| it.named == named).unwrap()
}

/// Numbers of the paper that ours are not within a twentieth of.
fn far(all: &[Compared]) -> Vec<&'static str> {
    all.iter().filter(|it| it.is_far()).map(|it| it.id).collect()
}

#[test]
fn the_papers_numbers_come_out_and_what_differs_is_explained() {
    let all = compare(results());
    for row in &all {
        let difference = row.difference();
        assert!(difference.abs() < 0.2, "{}: {difference}", row.id);
        assert!(!row.is_far() || !row.because.is_empty(), "{}: {difference}", row.id);
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

/// A part of `docs/planner.md`.
fn table(all: &[Compared]) -> String {
    let mut text = "| | the paper | ours | | difference |\n|---|---:|---:|---|---:|\n".to_owned();
    for row in all {
        let Compared { what, unit, paper, ours, .. } = row;
        let percent = row.difference() * 100.0;
        writeln!(text, "| {what} | {paper} | {ours:.2} | {unit} | {percent:+.1} % |").unwrap();
    }
    text
}

#[test]
fn the_document_has_the_numbers_that_are_simulated_and_the_reasons() {
    let document = include_str!("../../../docs/planner.md");
    let mut all = compare(results());
    let table_now = table(&all);
    assert!(document.contains(&table_now), "docs/planner.md lacks\n{table_now}");
    let words = document.split_whitespace().collect::<Vec<_>>().join(" ");
    for row in all.iter().filter(|row| row.is_far()) {
        assert!(words.contains(row.because), "docs/planner.md lacks: {}", row.because);
    }
    all[0].ours += 0.01;
    assert!(!document.contains(&table(&all)));
}

/// What is drawn in a picture, without the date.
fn lines(picture: &str) -> Vec<&str> {
    picture.lines().filter(|line| !line.contains("medians;")).collect()
}

#[test]
fn the_documents_picture_is_of_what_is_simulated() {
    let drawing = drawn::paper(results(), &compare(results()));
    let mut figures = Figures::here("picture", "none", "none");
    figures.figures = drawing.figures;
    let folder = tempfile::tempdir().unwrap();
    figures.write_with_charts(folder.path(), &[], &drawing.charts).unwrap();
    let picture = fs::read_to_string(folder.path().join("picture.svg")).unwrap();
    let document = include_str!("../../../docs/planner.svg");
    let is_same = lines(&picture) == lines(document);
    assert!(is_same, "docs/planner.svg is not the plan-paper.svg of `holdfast plan paper --out .`");
    assert!(lines(document).len() > 100);
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
fn the_crossover_of_means_is_the_papers_if_the_lowest_request_time_is() {
    // What the document says of the crossover: with durable memory requests take their lowest time
    // on both sides of it, so it is where those without come down to that.
    let (papers_lowest, papers_crossover) = (11_100.0, 1650e6);
    let without = of_means(&of(Named::Large).curve);
    let least = |part: f64| without.within(papers_crossover * part).unwrap().request_cycles;
    assert!(least(0.95) > papers_lowest && least(1.05) < papers_lowest);
    let durable = &of(Named::LargeDurable).curve;
    let lowest = durable.within(f64::MAX).unwrap().request_cycles;
    assert!(durable.within(papers_crossover / 2.0).unwrap().request_cycles < lowest * 1.01);
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
        let steady = of(Named::Large).curve.without_checkpoints.paging_cycles;
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
    let steady = steady(&small, None, Effort::FAST);
    assert_eq!(warm_up(&small, &steady, Effort::FAST).full, None);
}

//! What is drawn, and what is replayed.

use std::collections::BTreeSet;

use super::*;

const PAGES: u64 = 1000;

fn drawn(mix: &Mix, seed: u64, count: usize) -> Vec<Request> {
    let mut requests = Requests::new(&Load::Mix(*mix), seed);
    (0..count).map(|_| requests.next()).collect()
}

/// The part of the requests for which something is so.
fn part(requests: &[Request], is_so: impl Fn(&Request) -> bool) -> f64 {
    requests.iter().filter(|request| is_so(request)).count() as f64 / requests.len() as f64
}

#[test]
fn the_same_seed_draws_the_same_requests_and_another_does_not() {
    let mix = Mix::paper(PAGES);
    assert_eq!(drawn(&mix, 7, 100), drawn(&mix, 7, 100));
    assert_ne!(drawn(&mix, 7, 100), drawn(&mix, 8, 100));
}

#[test]
fn hot_pages_and_writes_get_their_parts_of_the_requests() {
    for seed in 1..=5 {
        let mix = Mix { database_pages: PAGES, hot_pages: 0.3, hot_requests: 0.6, writes: 0.1 };
        let requests = drawn(&mix, seed, 200_000);
        let is_hot = |request: &Request| request.page < 300;
        let found = [
            part(&requests, is_hot),
            part(&requests, |it| is_hot(it) && it.is_write),
            part(&requests, |it| !is_hot(it) && it.is_write),
        ];
        for (found, wanted) in found.into_iter().zip([0.6, 0.06, 0.04]) {
            // Five times what one of 100,000 runs would differ by.
            let most = 5.0 * (wanted / 200_000.0_f64).sqrt();
            assert!((found - wanted).abs() < most, "seed {seed}: {found}, not {wanted}");
        }
    }
}

#[test]
fn every_page_is_asked_for_and_no_other() {
    let pages: BTreeSet<u32> =
        drawn(&Mix::paper(PAGES), 1, 200_000).into_iter().map(|it| it.page).collect();
    assert_eq!(pages, (0..1000).collect());
}

#[test]
fn a_load_without_writes_writes_nothing_and_one_of_writes_only_reads_nothing() {
    let writes = |part| {
        drawn(&Mix { writes: part, ..Mix::paper(PAGES) }, 1, 10_000)
            .into_iter()
            .filter(|it| it.is_write)
            .count()
    };
    assert_eq!((writes(0.0), writes(1.0)), (0, 10_000));
}

#[test]
fn a_trace_begins_again_at_its_end() {
    let trace = Trace::read("r 5\nw 9\n".as_bytes()).unwrap();
    let mut requests = Requests::new(&Load::Trace(Arc::new(trace)), 1);
    let read = Request { page: 0, is_write: false };
    let written = Request { page: 1, is_write: true };
    let found: Vec<Request> = (0..4).map(|_| requests.next()).collect();
    assert_eq!(found, [read, written, read, written]);
}

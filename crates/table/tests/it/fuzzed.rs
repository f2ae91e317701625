//! Scripts of clients that send anything: those that the fuzzer kept, and random ones.

use std::fs;
use std::path::PathBuf;

use holdfast_io::fake::Random;

use crate::power::with_seeds;
use crate::{model, support};

#[path = "../../../../lab/fuzz/src/tables.rs"]
mod script;

fn corpus() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/fuzz/corpus/tables"))
}

#[test]
fn every_case_that_the_fuzzer_kept_still_holds() {
    let mut count = 0;
    for entry in fs::read_dir(corpus()).unwrap() {
        let path = entry.unwrap().path();
        println!("case {}: cargo +nightly fuzz run tables {0}", path.display());
        script::run(&fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count >= script::seeds().len(), "the corpus is not here");
}

/// A seed some of whose bytes are others.
fn play(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let seeds = script::seeds();
    let mut script = seeds[random.below(seeds.len() as u64) as usize].1.clone();
    for _ in 0..random.below(6) {
        let at = random.below(script.len() as u64) as usize;
        match random.below(3) {
            0 => script[at] = random.any() as u8,
            1 if script.len() > 1 => drop(script.remove(at)),
            _ => script.insert(at, random.any() as u8),
        }
    }
    script::run(&script);
    1
}

#[test]
fn whatever_a_client_sends_is_answered_as_a_list_of_rows_would() {
    with_seeds(1..200, "fuzzed::whatever_a_client", play);
}

#[test]
#[should_panic = "another row"]
fn a_canary_an_answer_that_is_not_the_models_is_noticed() {
    let mut model = model::Model::default();
    let request = holdfast_table::Request::new().get("t", holdfast_table::row![1_u64]);
    let answer = Ok(vec![holdfast_table::Outcome::NoRow]);
    assert_eq!(answer, model.respond(&request), "another row");
}

/// Writes the seeds into the corpus:
/// `cargo test -p holdfast-table --test it seeds_are -- --ignored`.
#[test]
#[ignore = "writes into the source tree"]
fn seeds_are_written() {
    fs::create_dir_all(corpus()).unwrap();
    for (name, seed) in script::seeds() {
        fs::write(corpus().join(name), seed).unwrap();
    }
}

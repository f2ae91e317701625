//! The corpus of the fuzzer, on every compiler.

#[path = "../../../../lab/fuzz/src/decoder.rs"]
mod decoder;

use std::fs;
use std::path::PathBuf;

fn corpus() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/fuzz/corpus/decoder"))
}

#[test]
fn every_case_that_the_fuzzer_kept_still_holds() {
    let mut count = 0;
    for entry in fs::read_dir(corpus()).unwrap() {
        let path = entry.unwrap().path();
        println!("case {}: cargo +nightly fuzz run decoder {0}", path.display());
        decoder::run(&fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count >= decoder::seeds().len(), "the corpus is not here");
}

#[test]
fn every_seed_holds() {
    for (name, seed) in decoder::seeds() {
        println!("seed {name}");
        decoder::run(&seed);
    }
}

/// Writes the seeds into the corpus: `cargo test -p holdfast-wal --test it seeds -- --ignored`.
#[test]
#[ignore = "writes into the source tree"]
fn seeds_are_written() {
    fs::create_dir_all(corpus()).unwrap();
    for (name, seed) in decoder::seeds() {
        fs::write(corpus().join(name), seed).unwrap();
    }
}

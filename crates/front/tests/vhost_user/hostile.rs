//! Scripts of the fuzzer, and random ones, against the device.

use std::fs;
use std::path::PathBuf;

#[path = "../../../../lab/fuzz/src/vhost_user.rs"]
mod scripts;

use crate::seeds::{Random, for_seeds};

fn corpus() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/fuzz/corpus/vhost_user"))
}

#[test]
fn scripts_to_begin_with_hurt_nobody() {
    for (name, script) in scripts::seeds() {
        println!("{name}");
        scripts::run(&script);
    }
}

/// Canary for the rest: a script reaches the disk, and its guest is answered.
#[test]
fn a_sound_script_is_answered() {
    let scripts = scripts::seeds();
    let (_, script) = scripts.iter().find(|(name, _)| *name == "requests").unwrap();
    assert!((0..100).any(|_| scripts::run(script) >= 4), "requests are not answered");
}

#[test]
fn every_case_that_the_fuzzer_kept_hurts_nobody() {
    let mut count = 0;
    for entry in fs::read_dir(corpus()).unwrap() {
        let path = entry.unwrap().path();
        println!("case {}: cargo +nightly fuzz run vhost_user {0}", path.display());
        scripts::run(&fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count >= scripts::seeds().len(), "the corpus is not here");
}

/// Writes the seeds into the corpus:
/// `cargo test -p holdfast-front --test vhost_user seeds_are_written -- --ignored`.
#[test]
#[ignore = "writes into the source tree"]
fn seeds_are_written() {
    fs::create_dir_all(corpus()).unwrap();
    for (name, seed) in scripts::seeds() {
        fs::write(corpus().join(name), seed).unwrap();
    }
}

#[test]
fn random_frontends_and_guests_hurt_nobody() {
    for_seeds("hostile::random_frontends_and_guests_hurt_nobody", 300, |seed| {
        let mut random = Random::new(seed);
        let seeds = scripts::seeds();
        // A sound beginning, then anything.
        let mut script = match random.below(4) {
            0 => Vec::new(),
            _ => seeds[random.below(seeds.len() as u64) as usize].1[..2].to_vec(),
        };
        script.extend((0..random.below(2000)).map(|_| random.next() as u8));
        scripts::run(&script);
    });
}

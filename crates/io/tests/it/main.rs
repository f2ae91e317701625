//! The border to the machine, as its users see it.

// Helpers of tests fail like tests, and print the command that repeats a failure.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod conformance;
mod faults;
mod forks;
mod named;
mod one_file;
mod power;
mod real;

use std::path::Path;
use std::sync::Arc;

use holdfast_io::{Files, OpenFile, OpenHow};

/// How to open a file that may have to be made.
const CREATE: OpenHow =
    OpenHow { write: true, create_mode: Some(0o644), exclusive: false, direct: false };

/// Makes or opens a file for writing.
fn create(files: &dyn Files, path: &str) -> Arc<dyn OpenFile> {
    files.open(Path::new(path), CREATE).expect("a file that can be made")
}

/// All bytes of a file; `None` if it is not there.
fn contents(files: &dyn Files, path: &str) -> Option<Vec<u8>> {
    let file = files.open(Path::new(path), OpenHow::default()).ok()?;
    let mut bytes = vec![0; file.metadata().expect("an open file").size_bytes as usize];
    let read = file.read_full_at(&mut bytes, 0).expect("an undamaged file");
    assert_eq!(read, bytes.len());
    Some(bytes)
}

/// The seeds to run: `HOLDFAST_SEED` alone, or else the first `count`.
fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("HOLDFAST_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("HOLDFAST_SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..count,
    }
}

/// Runs a test with every seed; a failure says how to repeat it.
fn for_seeds(count: u64, test: &str, check: impl Fn(u64)) {
    for seed in seeds(count) {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(seed)));
        if let Err(panic) = outcome {
            eprintln!(
                "seed {seed}: HOLDFAST_SEED={seed} cargo test -p holdfast-io --test it {test}"
            );
            std::panic::resume_unwind(panic);
        }
    }
}

//! `boot/setup`, where a command fails.

use std::fs;
use std::process::{Command, Output};

/// Runs a step made of these commands, and then another one.
fn run(place: &std::path::Path, commands: &str) -> Output {
    let step = concat!(env!("CARGO_MANIFEST_DIR"), "/boot/step");
    let script = format!(
        "set -euo pipefail
        place={place} log={place}/log SUITE= DATABASES=() DATA_IMAGE_BYTES=0
        say() {{ echo \"guests: $*\" >&2; }}
        in_root() {{ :; }}
        unpack_kernel() {{ :; }}
        . {step}
        make_first() {{ {commands}; }}
        make_second() {{ touch {place}/second; }}
        step first make_first 'the first step'
        step second make_second 'the second step'",
        place = place.display(),
    );
    Command::new("bash").args(["-c", &script]).output().expect("bash")
}

#[test]
fn a_command_that_fails_ends_its_step_and_is_named() {
    let place = tempfile::tempdir().unwrap();
    let ended = run(place.path(), &format!("false; touch {}/first", place.path().display()));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("failed: false\n"), "{said}");
    let made: Vec<_> = fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(made, [place.path().join("log")], "and nothing behind it is done");
}

#[test]
fn a_step_that_was_finished_is_not_repeated() {
    let place = tempfile::tempdir().unwrap();
    let commands = format!("touch {}/first", place.path().display());
    let first = run(place.path(), &commands);
    assert!(String::from_utf8(first.stderr).unwrap().contains("the first step"));
    let second = run(place.path(), &commands);
    assert_eq!((second.status.code(), second.stderr), (Some(0), Vec::new()));
}

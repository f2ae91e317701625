//! `holdfast run`: a volume around one command.

use crate::fixture::{Ended, Fixture};
use std::fs;

fn run(fixture: &Fixture, more: &[&str], script: &str) -> Ended {
    let (home, mount) = (fixture.home(), fixture.mount());
    let mut arguments = vec!["run", "--home", home.to_str().unwrap()];
    arguments.extend(["--mount", mount.to_str().unwrap(), "--memory", "8MiB"]);
    arguments.extend(more);
    arguments.extend(["--", "sh", "-c", script]);
    fixture.holdfast(&arguments)
}

#[test]
fn the_command_sees_the_volume_and_its_code_is_ours() {
    let fixture = Fixture::new();
    let script = format!("echo made > {}/f; exit 42", fixture.mount().display());
    let ended = run(&fixture, &["--must-survive", "process"], &script);
    assert_eq!(ended.code, Some(42), "{ended:?}");
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"made\n");
    assert!(!fixture.is_mounted());
    assert!(!fixture.path("home.holdfast").exists(), "the log is gone with the run");
}

#[test]
fn what_it_survives_is_printed_and_writing_through_is_the_default() {
    let ended = run(&Fixture::new(), &[], "true");
    ended.expect(0, &["class disk", "writes through because of power"]);
}

#[test]
fn a_command_ended_by_a_signal_is_told_as_shells_do() {
    let ended = run(&Fixture::new(), &[], "kill -TERM $$");
    assert_eq!(ended.code, Some(128 + 15), "{ended:?}");
}

#[test]
fn a_command_that_cannot_be_started_has_a_code_of_its_own() {
    let fixture = Fixture::new();
    let (home, mount) = (fixture.home(), fixture.mount());
    let (home, mount) = (home.to_str().unwrap(), mount.to_str().unwrap());
    let ended = fixture.holdfast(&["run", "--home", home, "--mount", mount, "--", "/nowhere"]);
    ended.expect(125, &["/nowhere"]);
    assert!(!fixture.is_mounted());
    let ended = fixture.holdfast(&["run", "--home", "/nowhere", "--mount", mount, "--", "true"]);
    ended.expect(125, &["--home", "/nowhere"]);
}

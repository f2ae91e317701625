//! Results that nobody reads to their end, and a terminal that is gone.

use crate::fixture::{Ended, Fixture, NAME};
use std::fs::File;
use std::io::Write;
use std::process::Stdio;

/// Commands that print a result, whatever is there.
const PRINTING: &[&[&str]] = &[
    &["status"],
    &["status", "--json"],
    &["volume", "list"],
    &["volume", "list", "--json"],
    &["volume", "check", NAME],
    &["volume", "check", NAME, "--json"],
    &["matrix"],
    &["umount", NAME],
];

/// A pipe that nobody reads from.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Runs a command with this as its standard output.
fn printed_to(fixture: &Fixture, arguments: &[&str], out: Stdio) -> Ended {
    let mut command = fixture.command();
    command.args(arguments).stdin(Stdio::null()).stdout(out).stderr(Stdio::piped());
    Ended::of(command.spawn().unwrap().wait_with_output().unwrap())
}

#[test]
fn whoever_stops_reading_ends_every_command_quietly_with_the_code_of_a_broken_pipe() {
    let fixture = Fixture::made();
    for arguments in PRINTING {
        let ended = printed_to(&fixture, arguments, unread());
        assert_eq!(ended.code, Some(141), "{arguments:?}: {ended:?}");
        assert!(!ended.err.contains("panicked"), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn a_result_that_cannot_be_printed_is_a_failure_that_is_told() {
    let fixture = Fixture::made();
    for arguments in PRINTING {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = printed_to(&fixture, arguments, full.into());
        assert_eq!(ended.code, Some(1), "{arguments:?}: {ended:?}");
        assert!(ended.err.contains("printing failed: No space"), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn a_scan_that_nobody_reads_to_its_end_closes_its_store_and_ends_quietly() {
    let fixture = Fixture::new();
    let store = fixture.path("store");
    let store = store.to_str().unwrap();
    let stored = |arguments: &[&str]| fixture.holdfast(&[&["store"], arguments].concat());
    stored(&["open", store]).succeeded();
    stored(&["put", store, "key", "value"]).succeeded();
    let ended = printed_to(&fixture, &["store", "scan", store], unread());
    assert_eq!(ended.code, Some(141), "{ended:?}");
    assert!(!ended.err.contains("failed"), "{ended:?}");
}

#[test]
fn a_problem_is_told_by_its_code_alone_where_nobody_listens() {
    let fixture = Fixture::new();
    let mut command = fixture.command();
    command.args(["mount", NAME]).stdout(unread()).stderr(unread());
    assert_eq!(command.status().unwrap().code(), Some(4));
}

/// The keeper says more to its log than a pipe has room for.
#[test]
fn a_keeper_whose_log_nobody_reads_any_more_goes_on() {
    let mut fixture = Fixture::made();
    let mut command = fixture.command();
    command.env("HOLDFAST_LOG", "debug").stdout(unread());
    fixture.serve_with_log(command, unread());
    std::fs::write(fixture.mount().join("f"), "x").unwrap();
    fixture.holdfast(&["umount", NAME]).succeeded();
    let mut file = File::create(fixture.home().join("g")).unwrap();
    file.write_all(b"ordinary").unwrap();
    assert_eq!(fixture.stop(), Some(0));
}

//! A modelled disk in a process of its own: this very program, started once more. So it is there
//! whatever was built, and is no part of the command.

use holdfast_slowdisk::{SlowDisk, run};
use std::path::Path;
use std::process::{Command, Stdio};

/// Has this program be a slow disk: its arguments, each in a line.
const ARGUMENTS: &str = "HOLDFAST_TEST_SLOW_DISK";

/// What that program runs and nothing else.
const TEST: &str = "slow_disk::a_program_that_was_started_as_a_slow_disk_is_one";

/// Starts as a slow disk with these options. What test programs print is not for whoever counts
/// tests.
pub(crate) fn command(backing: &Path, mount: &Path, options: &[&str]) -> Command {
    let (backing, mount) = (backing.to_str().unwrap(), mount.to_str().unwrap());
    let places = ["--backing", backing, "--mount", mount];
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", TEST, "--nocapture"]).stdout(Stdio::null());
    command.env(ARGUMENTS, [&places, options].concat().join("\n"));
    command
}

#[test]
fn a_program_that_was_started_as_a_slow_disk_is_one() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let disk: SlowDisk =
        clap::Parser::try_parse_from(["slow disk"].into_iter().chain(arguments.lines())).unwrap();
    run(&disk).unwrap();
}

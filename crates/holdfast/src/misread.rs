//! Command lines that are not understood.
//!
//! Promise: whoever asked for JSON is told in JSON what is wrong with the command line; everybody
//! else reads it as it is usual.
//! Never: takes what belongs to a command that `run` starts for its own.

use crate::cli::Cli;
use crate::output::Output;
use clap::{Error, Parser};
use holdfast_config::exit::Exit;
use holdfast_config::problem::Problem;
use std::ffi::OsString;
use std::process::ExitCode;

/// What the command line asks for; or the end of a program that was not understood.
pub(crate) fn read() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| {
        if !(error.use_stderr() && asks_for_json(std::env::args_os())) {
            error.exit();
        }
        Output::of_this_process(true).problem(&problem(&error));
        Exit::Usage.into()
    })
}

fn asks_for_json(mut words: impl Iterator<Item = OsString>) -> bool {
    words.by_ref().take_while(|word| word != "--").any(|word| word == "--json")
}

/// The first of what clap says; the rest is how things look on a terminal.
fn problem(error: &Error) -> Problem {
    let text = error.to_string();
    let said = text.split("\n\n").next().unwrap_or_default();
    let why = said.trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" ");
    let remedy = "`holdfast --help` tells what there is";
    Problem::new(Exit::Usage, "reading the command line", why, remedy)
}

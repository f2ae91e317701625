//! Printing.
//!
//! Promise: the figures go to standard output, progress and errors to standard error.
//! Never: decides what is said.

use std::error::Error;
use std::process::ExitCode;

use holdfast_figures::Figures;

/// The figures as a table.
pub(crate) fn table(figures: &Figures) {
    print!("{}", figures.table());
}

/// How far the run is.
pub(crate) fn progress(round: usize, rounds: usize) {
    eprintln!("round {round} of {rounds}");
}

/// Says what went wrong, if anything.
pub(crate) fn exit(done: Result<(), Box<dyn Error>>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-server: {error}");
            ExitCode::FAILURE
        }
    }
}

//! Printing.
//!
//! Promise: the figures go to standard output, progress and errors to standard error.
//! Never: decides what is said.

use std::io::{self, Write};
use std::process::ExitCode;

use holdfast_figures::Figures;

use crate::Failure;

/// What the process that fills a log says when it has.
pub(crate) const FILLED: &str = "filled\n";

/// The figures as a table.
pub(crate) fn table(figures: &Figures) {
    print!("{}", figures.table());
}

/// How far the run is, or what is to be known about it.
pub(crate) fn progress(words: &str) {
    eprintln!("{words}");
}

/// Says so to the process that waits for it.
pub(crate) fn filled() -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(FILLED.as_bytes())?;
    out.flush()
}

/// Numbers, for the process that waits for them.
pub(crate) fn numbers(numbers: &[f64]) -> io::Result<()> {
    let words: Vec<String> = numbers.iter().map(f64::to_string).collect();
    writeln!(io::stdout(), "{}", words.join(" "))
}

/// Says what went wrong, if anything.
pub(crate) fn exit(done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-log: {error}");
            ExitCode::FAILURE
        }
    }
}

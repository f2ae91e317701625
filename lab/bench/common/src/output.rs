//! Printing.
//!
//! Promise: the figures go to standard output, progress and errors to standard error.
//! Never: decides what is said.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use holdfast_figures::Figures;

/// What a process that fills something to be killed with says when it has.
pub const FILLED: &str = "filled\n";

/// The figures as a table.
pub fn table(figures: &Figures) {
    print!("{}", figures.table());
}

/// How far the run is, or what is to be known about it.
pub fn progress(words: &str) {
    eprintln!("{words}");
}

/// Says so to the process that waits for it.
///
/// # Errors
/// If nobody listens.
pub fn filled() -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(FILLED.as_bytes())?;
    out.flush()
}

/// Numbers, for the process that waits for them.
///
/// # Errors
/// If nobody listens.
pub fn numbers(numbers: &[f64]) -> io::Result<()> {
    let words: Vec<String> = numbers.iter().map(f64::to_string).collect();
    writeln!(io::stdout(), "{}", words.join(" "))
}

/// Says what went wrong in a program, if anything.
pub fn exit(program: &str, done: Result<(), impl Display>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

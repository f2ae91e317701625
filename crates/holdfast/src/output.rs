//! Printing.
//!
//! Promise: results go to standard output, once, as text or JSON; progress and errors go to
//! standard error, so that a pipe sees results only.
//! Never: decides what is said.

use crate::problem::Problem;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::{self, IsTerminal};
use std::time::Duration;

/// How results are printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// As JSON.
    pub json: bool,
}

impl Output {
    /// Prints a result in one of its two forms.
    #[allow(clippy::print_stdout)]
    pub(crate) fn result(self, value: &impl Serialize, text: &str) {
        match self.json {
            true => println!("{}", serde_json::to_string(value).expect("plain data")),
            false => println!("{}", text.trim_end()),
        }
    }

    /// Prints lines that are in their form already.
    #[allow(clippy::print_stdout)]
    pub(crate) fn lines(self, lines: impl IntoIterator<Item = String>) {
        lines.into_iter().for_each(|line| println!("{line}"));
    }

    /// Prints a sentence about what was done.
    pub(crate) fn done(self, text: &str) {
        self.result(&serde_json::json!({ "done": text }), text);
    }

    /// Prints why a command failed.
    #[allow(clippy::print_stderr)]
    pub(crate) fn problem(self, problem: &Problem) {
        match self.json {
            true => eprintln!("{}", serde_json::json!({ "failed": problem })),
            false => eprintln!("holdfast: {problem}"),
        }
    }
}

/// Writes a line. Returns whether anybody reads on.
pub(crate) fn write_line(out: &mut impl io::Write, line: &str) -> io::Result<bool> {
    match writeln!(out, "{line}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

/// Progress of something that may take long: one line that changes on a terminal, lines elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Shows nothing until something is said.
    pub(crate) fn new() -> Progress {
        Progress { bar: std::io::stderr().is_terminal().then(ProgressBar::new_spinner) }
    }

    /// A bar of bytes, where there is a terminal; nothing elsewhere.
    pub(crate) fn of_bytes(text: &str) -> Progress {
        let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes} of {total_bytes}");
        let style = style.expect("the template has no unknown words");
        let bar = || ProgressBar::new(0).with_style(style).with_message(text.to_owned());
        Progress { bar: std::io::stderr().is_terminal().then(bar) }
    }

    /// So many bytes are done, of so many.
    pub(crate) fn done(&mut self, done_bytes: u64, all_bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(all_bytes);
            bar.set_position(done_bytes);
        }
    }

    /// Says how far it is.
    #[allow(clippy::print_stderr)]
    pub(crate) fn say(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => {
                bar.enable_steady_tick(Duration::from_millis(100));
                bar.set_message(text.to_owned());
            }
            None => eprintln!("holdfast: {text}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

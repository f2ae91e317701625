//! What the command line of a benchmark asks for.
//!
//! Promise: words that no run has, or a run without a folder to write to, are refused with all that
//! there is.
//! Never: knows which names there are.

use std::path::PathBuf;

use crate::Failure;

/// A run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Where the figures go.
    pub out: PathBuf,
    /// Whether less of each is enough.
    pub quick: bool,
    /// The only names to measure, with commas between them.
    pub only: Option<String>,
}

impl Task {
    /// The run that the words after a program's name ask for.
    ///
    /// # Errors
    /// How to use the program.
    pub fn parse(program: &str, mut words: &[&str]) -> Result<Task, Failure> {
        let usage = || format!("usage: {program} --out FOLDER [--quick] [--only NAME,NAME...]");
        let mut task = Task::default();
        while !words.is_empty() {
            words = match words {
                ["--out", out, rest @ ..] => {
                    task.out = out.into();
                    rest
                }
                ["--only", names, rest @ ..] => {
                    task.only = Some((*names).into());
                    rest
                }
                ["--quick", rest @ ..] => {
                    task.quick = true;
                    rest
                }
                _ => return Err(usage().into()),
            };
        }
        if task.out.as_os_str().is_empty() { Err(usage().into()) } else { Ok(task) }
    }

    /// How much this run does of what a whole or a quick one does.
    #[must_use]
    pub fn effort<E>(&self, whole: E, quick: E) -> E {
        if self.quick { quick } else { whole }
    }
}

#[cfg(test)]
mod tests;

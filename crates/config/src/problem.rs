//! Errors as the user meets them.
//!
//! Promise: every error names what failed, why, and what to do about it, and carries its exit code;
//! it crosses the control socket unchanged.
//! Never: is made for the reader of the source; no debug output, no type names.

use crate::exit::Exit;
use crate::shortage;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;

/// One failure, complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What was being done, such as `attaching volume pgwal`.
    pub what: String,
    /// Why it failed.
    pub why: String,
    /// What the user can do now.
    pub remedy: String,
    /// The exit code it ends a command with.
    pub exit: Exit,
    /// It comes of something that the system does not have at the moment, and passes by itself.
    #[serde(default)]
    pub passes: bool,
}

/// The result of most of this program.
pub type Outcome<T> = Result<T, Problem>;

impl Problem {
    /// A failure with its three sentences. `why` is anything printable, most often an `io::Error`.
    pub fn new(
        exit: Exit,
        what: impl Into<String>,
        why: impl fmt::Display,
        remedy: impl Into<String>,
    ) -> Problem {
        Problem {
            what: what.into(),
            why: why.to_string(),
            remedy: remedy.into(),
            exit,
            passes: false,
        }
    }

    /// [`Self::new`] for an error that may be one that passes.
    pub fn caused(
        exit: Exit,
        what: impl Into<String>,
        why: impl Error + 'static,
        remedy: impl Into<String>,
    ) -> Problem {
        let passes = shortage::passes(&why);
        Problem { passes, ..Problem::new(exit, what, why, remedy) }
    }

    /// With a second one, met on the way out, which says how things are left by its exit code.
    pub fn and(self, second: Problem) -> Problem {
        Problem { remedy: format!("{}; then {second}", self.remedy), exit: second.exit, ..self }
    }

    /// All that is against something: whoever hears of it hears of each.
    pub fn all(problems: impl IntoIterator<Item = Problem>) -> Outcome<()> {
        problems.into_iter().reduce(Problem::and).map_or(Ok(()), Err)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}; {}", self.what, self.why, self.remedy)
    }
}

#[cfg(test)]
mod tests;

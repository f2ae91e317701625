//! What a broken rule looks like.
//!
//! Promise: says where it is and how to mend it.
//! Never: decides what is broken.

use std::fmt;
use std::path::PathBuf;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(super) path: PathBuf,
    pub(super) line: usize,
    pub(super) fix: String,
}

impl Fault {
    /// A fault at a line, counted from 1. `fix` says what is wrong and what to do.
    pub(super) fn new(path: impl Into<PathBuf>, line: usize, fix: impl Into<String>) -> Fault {
        Fault { path: path.into(), line, fix: fix.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path.display(), self.line, self.fix)
    }
}

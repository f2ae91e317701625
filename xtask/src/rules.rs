//! The rules, and what a broken one looks like.
//!
//! Promise: every fault says where it is and how to mend it; every rule has a canary, a sample
//! that it must refuse.
//! Never: reads a file; the tree was read before.

mod critical;
mod doors;
mod edges;
mod length;
mod links;
mod looks;
mod text;
mod words;
mod workspace;

use std::fmt;
use std::path::PathBuf;

use crate::source::Tree;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    path: PathBuf,
    line: usize,
    fix: String,
}

impl Fault {
    /// A fault at a line, counted from 1. `fix` says what is wrong and what to do.
    fn new(path: impl Into<PathBuf>, line: usize, fix: impl Into<String>) -> Fault {
        Fault { path: path.into(), line, fix: fix.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path.display(), self.line, self.fix)
    }
}

/// A rule about the whole repository.
type Rule = fn(&Tree) -> Vec<Fault>;

const RULES: [Rule; 9] = [
    text::check,
    length::check,
    words::check,
    edges::check,
    workspace::check,
    critical::check,
    links::check,
    doors::check,
    looks::check,
];

/// Applies every rule.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    RULES.iter().flat_map(|rule| rule(tree)).collect()
}

/// Sizes that are watched but not bounded one by one.
pub(crate) fn summary(tree: &Tree) -> String {
    format!("{}; durability depends on {} lines", length::summary(tree), critical::lines(tree))
}

#[cfg(test)]
mod tests;

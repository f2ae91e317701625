//! The rules, and what a broken one looks like.
//!
//! Promise: every fault says where it is and how to mend it; every rule has a canary, a sample
//! that it must refuse.
//! Never: reads a file; the tree was read before.

mod circles;
mod critical;
mod doors;
mod edges;
mod fault;
mod length;
mod links;
mod looks;
mod text;
mod words;
mod workspace;

use crate::source::Tree;
use fault::Fault;

/// A rule about the whole repository.
type Rule = fn(&Tree) -> Vec<Fault>;

const RULES: [Rule; 10] = [
    text::check,
    length::check,
    words::check,
    edges::check,
    workspace::check,
    circles::check,
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

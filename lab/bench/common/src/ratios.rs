//! What follows from the runs of two figures.
//!
//! Promise: a ratio is taken between runs of one repetition, and against the peer that is the best
//! by the median of its runs.
//! Never: measures.

use holdfast_figures::median;

use crate::ledger::Ledger;

/// Who it is that a best peer is.
pub const BEST: &str = "the peer with the best median";

/// Run by run; nothing without runs on both sides.
#[must_use]
pub fn divided(ours: &[f64], theirs: &[f64]) -> Option<Vec<f64>> {
    let both = !ours.is_empty() && ours.len() == theirs.len();
    both.then(|| ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect())
}

/// The peer whose figure is the highest. One for all repetitions: the best of several noisy peers
/// in each is better than any of them.
pub fn best<'a>(
    ledger: &Ledger,
    peers: &[&'a str],
    id: impl Fn(&str) -> String,
) -> Option<&'a str> {
    let measured = |peer: &&&str| !ledger.runs(&id(peer)).is_empty();
    let value = |peer: &str| median(ledger.runs(&id(peer)));
    let peers = peers.iter().filter(measured);
    peers.max_by(|one, other| value(one).total_cmp(&value(other))).copied()
}

#[cfg(test)]
mod tests;

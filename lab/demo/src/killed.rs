//! What a series of kills did, as figures.
//!
//! Promise: whatever may not happen has the goal zero.
//! Never: knows whether it happened to a database or to the way to its log.

use holdfast_figures::{Better, Figure};

use super::kills::{Kill, Victim};

/// A series, and what its ids begin with.
pub(super) struct Killed<'a> {
    /// What stands before `.kills.`.
    pub(super) id: String,
    /// The kills.
    pub(super) kills: &'a [Kill],
}

impl Killed<'_> {
    /// What is asked of every series.
    pub(super) fn figures(&self) -> Vec<Figure> {
        let complaints = self.sum("complaints", "kills", |it| u64::from(!it.complaint.is_empty()));
        vec![
            self.counted("count", |_| true),
            self.sum("acknowledged", "transactions", |it| it.acknowledged),
            none_of(self.sum("lost", "transactions", |it| it.lost)),
            none_of(complaints),
        ]
    }

    /// Transactions that failed.
    pub(super) fn failed(&self, id: &str) -> Figure {
        none_of(self.sum(id, "transactions", |it| it.failed))
    }

    /// How many kills there were of these victims.
    pub(super) fn counted(&self, id: &str, of: impl Fn(Victim) -> bool) -> Figure {
        self.sum(id, "kills", |it| u64::from(of(it.victim)))
    }

    /// The longest that one of these victims was missed.
    pub(super) fn longest(&self, id: &str, of: impl Fn(Victim) -> bool) -> Figure {
        let stalls = self.kills.iter().filter(|it| of(it.victim)).map(|it| it.stall_ms);
        self.figure(id, "ms", Better::Lower, stalls.fold(0.0, f64::max))
    }

    fn sum(&self, id: &str, unit: &str, of: impl Fn(&Kill) -> u64) -> Figure {
        let sum = self.kills.iter().map(of).sum::<u64>();
        self.figure(id, unit, Better::Higher, sum as f64)
    }

    fn figure(&self, id: &str, unit: &str, better: Better, value: f64) -> Figure {
        Figure::of(format!("{}.kills.{id}", self.id), unit, better, vec![value])
    }
}

/// The same figure, of what may not happen.
fn none_of(figure: Figure) -> Figure {
    Figure { better: Better::Lower, ..figure }.against(0.0, "what was acknowledged")
}

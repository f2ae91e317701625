//! What every run came to, by figure.
//!
//! Promise: a figure is where it was first noted, and keeps every run.
//! Never: throws a run away.

use holdfast_figures::{Better, Figure};

/// A figure's runs.
struct Line {
    id: String,
    unit: &'static str,
    better: Better,
    runs: Vec<f64>,
}

/// All figures.
#[derive(Default)]
pub struct Ledger(Vec<Line>);

impl Ledger {
    /// Adds a run to a figure of which more is better.
    pub fn higher(&mut self, id: String, unit: &'static str, run: f64) {
        self.note(id, unit, Better::Higher, run);
    }

    /// Adds a run to a figure of which less is better.
    pub fn lower(&mut self, id: String, unit: &'static str, run: f64) {
        self.note(id, unit, Better::Lower, run);
    }

    fn note(&mut self, id: String, unit: &'static str, better: Better, run: f64) {
        match self.0.iter_mut().find(|line| line.id == id) {
            Some(line) => line.runs.push(run),
            None => self.0.push(Line { id, unit, better, runs: vec![run] }),
        }
    }

    /// The runs of a figure, in order; none of one that is not there.
    #[must_use]
    pub fn runs(&self, id: &str) -> &[f64] {
        self.0.iter().find(|line| line.id == id).map_or(&[], |line| &line.runs)
    }

    /// The medians, in the order of the ids' first runs.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        let figure =
            |line: &Line| Figure::of(line.id.clone(), line.unit, line.better, line.runs.clone());
        self.0.iter().map(figure).collect()
    }
}

//! The figures of one benchmark.
//!
//! Promise: each figure has its unit, the single runs behind it and, where there is one, its goal
//! and what it was measured against.
//! Never: rounds a figure; only the table does.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::machine::{Machine, commit, utc_now};
use crate::values::median;

/// The result of one benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Name of the benchmark, also of its files.
    pub name: String,
    /// Commit of the source tree it was built in, or `unknown`.
    pub commit: String,
    /// When it ended, UTC, ISO 8601.
    pub date: String,
    /// What it ran on.
    pub machine: Machine,
    /// What an acknowledgement meant.
    pub class: String,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// One number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// Stable name, such as `postgres.c8.holdfast_over_sync`.
    pub id: String,
    /// Median of `runs`.
    pub value: f64,
    /// Unit of `value` and `runs`.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// What the project asks of it; absent for a row that is only reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<f64>,
    /// What it is compared with, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// What an acknowledgement meant, where it differs between the figures of a benchmark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The single runs, in the order they ran.
    pub runs: Vec<f64>,
}

impl Figure {
    /// A figure whose value is the median of its runs.
    #[must_use]
    pub fn of(id: impl Into<String>, unit: &str, better: Better, runs: Vec<f64>) -> Figure {
        let (id, unit, value) = (id.into(), unit.into(), median(&runs));
        Figure { id, value, unit, better, goal: None, peer: None, class: None, runs }
    }

    /// The same figure with a goal that stands for itself.
    #[must_use]
    pub fn wanted(mut self, goal: f64) -> Figure {
        self.goal = Some(goal);
        self
    }

    /// The same figure with what an acknowledgement meant in it.
    #[must_use]
    pub fn acknowledged_by(mut self, class: &str) -> Figure {
        self.class = Some(class.into());
        self
    }

    /// The same figure with a goal and what it is measured against.
    #[must_use]
    pub fn against(mut self, goal: f64, peer: &str) -> Figure {
        self.goal = Some(goal);
        self.beside(peer)
    }

    /// The same figure with what it is measured against, and no goal.
    #[must_use]
    pub fn beside(mut self, peer: &str) -> Figure {
        self.peer = Some(peer.into());
        self
    }

    /// Whether the goal is met; `None` without a goal.
    #[must_use]
    pub fn met(&self) -> Option<bool> {
        self.goal.map(|goal| match self.better {
            Better::Higher => self.value >= goal,
            Better::Lower => self.value <= goal,
        })
    }

    /// The goal in words and whether it is met; `None` without a goal.
    fn judged(&self) -> Option<String> {
        let bound = if self.better == Better::Higher { "at least" } else { "at most" };
        let word = if self.met()? { "met" } else { "MISSED" };
        self.goal.map(|goal| format!("  goal {bound} {goal} {word}"))
    }
}

impl Figures {
    /// An object for this commit, machine and moment, still without figures.
    #[must_use]
    pub fn here(name: &str, disk: &str, class: &str) -> Figures {
        Figures {
            name: name.into(),
            commit: commit(),
            date: utc_now(),
            machine: Machine::here(disk),
            class: class.into(),
            figures: Vec::new(),
        }
    }

    /// The figure with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.id == id)
    }

    /// Every figure, a line each.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        for figure in &self.figures {
            let (id, unit, goal) = (&figure.id, &figure.unit, figure.judged().unwrap_or_default());
            let _infallible = writeln!(text, "{id:<48} {:>14.2} {unit}{goal}", figure.value);
        }
        text
    }
}

#[cfg(test)]
mod tests;

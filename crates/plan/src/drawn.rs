//! What was simulated as figures and charts, for files.
//!
//! Promise: every point of a chart is a figure; the paper's numbers stand beside ours.
//! Never: simulates, or writes a file.

use holdfast_figures::{Better, Chart, Figure, Level, Line, Points};

use crate::advice::Advice;
use crate::curve::{Curve, Point};
use crate::paper::{Compared, FAR, Named, Results};

const WITHOUT: &str = "#8a8f98";
const WITH: &str = "#2f6fdb";
const PAPER: &str = "#c9a227";

/// Figures that sum up how far ours are from the paper's, and the rows that each is the largest
/// difference of.
const ERRORS: [(&str, &[&str]); 3] = [
    ("plan.lowest_request_time_error", &["large.lowest.cycles", "large_durable.lowest.cycles"]),
    (
        "plan.full_requests_error",
        &[
            "small.full.megarequests",
            "small_durable.full.megarequests",
            "large.full.kilorequests",
            "large_durable.full.kilorequests",
        ],
    ),
    ("plan.crossover_error", &["crossover.megacycles"]),
];

/// Figures, and the charts that show them.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    /// What the charts refer to, and what they have no room for.
    pub figures: Vec<Figure>,
    /// From the top.
    pub charts: Vec<Chart>,
}

/// The curve of one configuration.
#[must_use]
pub fn curve(title: &str, curve: &Curve) -> Drawing {
    let mut drawing = Drawing::default();
    let line = drawing.line("curve", "this configuration", WITH, curve);
    drawing.charts.push(against_recovery(title, vec![line], Vec::new()));
    drawing
}

/// The paper's figures 3 and 4, and its numbers beside ours.
///
/// # Panics
/// If the results of one of the four configurations are missing.
#[must_use]
pub fn paper(results: &[Results], compared: &[Compared]) -> Drawing {
    let mut drawing = Drawing::default();
    drawing.figures.extend(ERRORS.iter().map(|(id, rows)| error(id, rows, compared)));
    for row in compared {
        let theirs = format!("the paper: {}", row.paper);
        drawing.figures.push(one(&format!("plan.{}", row.id), row.unit, row.ours).beside(&theirs));
        drawing.figures.push(one(&format!("paper.{}", row.id), row.unit, row.paper));
    }
    let smaller = "Figure 3: recovery time and request time with the smaller database";
    drawing.two(smaller, [Named::Small, Named::SmallDurable], results, Vec::new());
    let level = |label: &str, id: &str, is_up| Level {
        label: format!("the paper: {label}"),
        colour: PAPER,
        id: format!("paper.{id}"),
        is_up,
    };
    let levels = vec![
        level("crossover", "crossover.megacycles", true),
        level("lowest request time without durable memory", "large.lowest.cycles", false),
        level("lowest request time with it", "large_durable.lowest.cycles", false),
    ];
    let larger = "Figure 4: recovery time and request time with the larger database";
    drawing.two(larger, [Named::Large, Named::LargeDurable], results, levels);
    drawing
}

/// The sizes of durable memory that were tried for an advice.
#[must_use]
pub fn advice(title: &str, advice: &Advice) -> Drawing {
    let mut drawing = Drawing::default();
    let mut points = Vec::new();
    for (pages, best) in
        advice.tried.iter().filter_map(|it| it.best.map(|best| (it.durable_pages, best)))
    {
        let id = |what: &str| format!("plan.durable_{pages}.{what}");
        drawing.figures.push(one(&id("pages"), "pages", pages as f64));
        drawing.figures.push(one(&id("request_cycles"), "cycles", best.request_cycles));
        drawing.figures.push(one(&id("interval"), "requests", best.interval));
        points.push([id("pages"), id("request_cycles")]);
    }
    let points = Points::Figures(points);
    let line = Line { label: "the best within the limit".into(), colour: WITH, points };
    drawing.charts.push(Chart {
        title: title.into(),
        across: "durable memory, pages".into(),
        up: "average request time, cycles".into(),
        lines: vec![line],
        levels: Vec::new(),
    });
    drawing
}

impl Drawing {
    /// Adds a chart of two configurations, without durable memory and with it.
    fn two(&mut self, title: &str, two: [Named; 2], results: &[Results], levels: Vec<Level>) {
        let labels = ["without durable memory", "with durable memory"];
        let mut lines = Vec::new();
        for ((named, label), colour) in two.into_iter().zip(labels).zip([WITHOUT, WITH]) {
            let of = results.iter().find(|it| it.named == named);
            let curve = &of.expect("all four configurations are there").curve;
            lines.push(self.line(&named.name().replace('-', "_"), label, colour, curve));
        }
        self.charts.push(against_recovery(title, lines, levels));
    }

    /// Adds the figures of a curve. Returns its line.
    fn line(&mut self, name: &str, label: &str, colour: &'static str, curve: &Curve) -> Line {
        let mut points = Vec::new();
        for Point { interval, steady } in &curve.points {
            let id = |what: &str| format!("plan.{name}.every_{interval}.{what}");
            let recovery = steady.recovery_cycles / 1e6;
            self.figures.push(one(&id("request_cycles"), "cycles", steady.request_cycles()));
            self.figures.push(one(&id("recovery_megacycles"), "megacycles", recovery));
            points.push([id("request_cycles"), id("recovery_megacycles")]);
        }
        Line { label: label.into(), colour, points: Points::Figures(points) }
    }
}

/// The largest difference of these rows, in percent.
fn error(id: &str, rows: &[&str], compared: &[Compared]) -> Figure {
    let rows = compared.iter().filter(|row| rows.contains(&row.id));
    let largest = rows.map(|row| row.difference().abs()).fold(0.0, f64::max);
    one(id, "percent", largest * 100.0).against(FAR * 100.0, "the paper")
}

fn one(id: &str, unit: &str, value: f64) -> Figure {
    Figure::of(id, unit, Better::Lower, vec![value])
}

fn against_recovery(title: &str, lines: Vec<Line>, levels: Vec<Level>) -> Chart {
    Chart {
        title: title.into(),
        across: "average request time, cycles".into(),
        up: "recovery time, megacycles".into(),
        lines,
        levels,
    }
}

#[cfg(test)]
mod tests;

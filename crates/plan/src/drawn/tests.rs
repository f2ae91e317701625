//! That nothing is drawn that is no figure.

use super::*;
use crate::configuration::Configuration;
use crate::curve::Curve;
use crate::paper::{compare, run};
use crate::steady::Effort;

/// The least that a curve can be made with.
const LITTLE: Effort = Effort { pages_max: 512, settling: 1, measured: 1, step: 8.0 };

/// Ids that charts refer to and figures do not have.
fn missing(drawing: &Drawing) -> Vec<String> {
    let is_there = |id: &String| drawing.figures.iter().any(|figure| figure.id == *id);
    let lines = drawing.charts.iter().flat_map(|chart| &chart.lines);
    let points = lines.flat_map(|line| line.points.ids());
    let levels = drawing.charts.iter().flat_map(|chart| &chart.levels);
    let ids = points.chain(levels.map(|level| &level.id));
    ids.filter(|id| !is_there(id)).cloned().collect()
}

#[test]
fn both_of_the_papers_figures_are_drawn_from_figures_alone() {
    let results = Named::ALL.map(|named| run(named, LITTLE, |_, _| {}));
    let compared = compare(&results);
    let drawing = paper(&results, &compared);
    assert_eq!(missing(&drawing), [""; 0]);
    assert_eq!(drawing.charts.len(), 2);
    for (row, whose) in compared.iter().flat_map(|row| [(row, "plan"), (row, "paper")]) {
        let id = format!("{whose}.{}", row.id);
        assert!(drawing.figures.iter().any(|figure| figure.id == id), "{id}");
    }
}

#[test]
fn an_error_is_the_largest_difference_of_its_rows_above_or_below() {
    let row = |id, ours| Compared { id, what: "", unit: "", paper: 100.0, ours, because: "" };
    let rows = [row("a", 103.0), row("b", 80.0), row("c", 200.0)];
    let error = error("plan.error", &["a", "b"], &rows);
    assert!((error.value - 20.0).abs() < 1e-9 && error.met() == Some(false), "{error:?}");
}

#[test]
fn every_row_that_an_error_is_of_is_there() {
    let compared = compare(&Named::ALL.map(|named| run(named, LITTLE, |_, _| {})));
    let is_there = |id: &&str| compared.iter().any(|row| row.id == *id);
    assert!(ERRORS.iter().flat_map(|(_, rows)| *rows).all(is_there));
}

#[test]
fn a_figure_that_is_missing_is_noticed() {
    let configuration = Configuration { seed: 3, ..Named::Small.configuration() };
    let mut drawing = curve("one", &Curve::of(&configuration, LITTLE, |_, _| {}));
    assert_eq!(missing(&drawing), [""; 0]);
    drawing.figures.pop();
    assert_eq!(missing(&drawing).len(), 1);
}

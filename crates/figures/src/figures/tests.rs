//! Goals.
//!
//! Promise: looks for what a reader needs.
//! Never: compares with a stored file.

use super::*;

fn figure(better: Better, goal: f64) -> Figure {
    Figure::of("x.over_y", "ratio", better, vec![2.0]).against(goal, "y")
}

#[test]
fn a_goal_is_met_from_its_own_side() {
    assert_eq!(figure(Better::Higher, 1.5).met(), Some(true));
    assert_eq!(figure(Better::Lower, 1.5).met(), Some(false));
    assert_eq!(Figure::of("x", "ratio", Better::Lower, vec![2.0]).beside("y").met(), None);
}

#[test]
fn a_figure_without_a_value_misses_its_goal() {
    let none = Figure::of("x", "ratio", Better::Higher, Vec::new()).against(1.0, "y");
    assert_eq!(none.met(), Some(false));
}

#[test]
fn the_table_says_which_goal_is_missed() {
    let mut figures = Figures::here("sample", "none", "none");
    figures.figures.push(figure(Better::Lower, 1.5));
    assert!(figures.table().contains("goal at most 1.5 MISSED"), "{}", figures.table());
}

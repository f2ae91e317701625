//! What a chart must show.
//!
//! Promise: looks for lines, marks and words, and for places only where one follows from another.
//! Never: compares with a stored picture.

use super::*;
use crate::figures::{Better, Figure};

fn figures(values: &[(&str, f64)]) -> Figures {
    let mut figures = Figures::here("sample", "none", "none");
    for (id, value) in values {
        figures.figures.push(Figure::of(*id, "cycles", Better::Lower, vec![*value]));
    }
    figures
}

fn chart(points: &[[&str; 2]], levels: &[(&str, bool)]) -> Chart {
    let level = |(id, is_up): &(&str, bool)| Level {
        label: format!("level {id}"),
        colour: "#123456",
        id: (*id).into(),
        is_up: *is_up,
    };
    Chart {
        title: "one < two".into(),
        across: "time".into(),
        up: "recovery".into(),
        lines: vec![Line {
            label: "both".into(),
            colour: "#654321",
            points: Points::Figures(points.iter().map(|ids| ids.map(str::to_owned)).collect()),
        }],
        levels: levels.iter().map(level).collect(),
    }
}

#[test]
fn every_point_is_a_dot_on_its_line() {
    let figures = figures(&[("a", 0.0), ("b", 50.0), ("c", 100.0), ("d", 0.0)]);
    let drawn = chart(&[["a", "b"], ["c", "d"]], &[]).draw(&figures, 0.0);
    assert_eq!(drawn.matches("<circle").count(), 2);
    // From the left, at the top, to the right, at the bottom.
    let (left, right, bottom) = (LEFT, WIDTH - RIGHT, HEAD + AREA_HEIGHT);
    let line = format!("points=\"{left:.1},{HEAD:.1} {right:.1},{bottom:.1}\"");
    assert!(drawn.contains(&line), "{drawn}");
    assert!(drawn.contains("one &lt; two") && drawn.contains(">both<"));
}

#[test]
fn a_point_without_a_figure_is_left_out() {
    let figures = figures(&[("a", 1.0), ("b", 2.0)]);
    let drawn = chart(&[["a", "b"], ["a", "missing"]], &[("gone", true)]).draw(&figures, 0.0);
    assert_eq!(drawn.matches("<circle").count(), 1);
    let dashes_in_the_legend = 1;
    assert_eq!(drawn.matches("stroke-dasharray").count(), dashes_in_the_legend);
}

#[test]
fn runs_of_two_figures_are_points_in_their_order() {
    let mut figures = figures(&[]);
    for (id, runs) in [("minutes", vec![0.0, 50.0, 100.0]), ("rate", vec![0.0, 0.0, 10.0])] {
        figures.figures.push(Figure::of(id, "any", Better::Higher, runs));
    }
    let mut chart = chart(&[], &[]);
    chart.lines[0].points = Points::Runs(["minutes", "rate"].map(str::to_owned));
    let drawn = chart.draw(&figures, 0.0);
    let (right, bottom) = (WIDTH - RIGHT, HEAD + AREA_HEIGHT);
    let middle = f64::midpoint(LEFT, right);
    let line = format!("{LEFT:.1},{bottom:.1} {middle:.1},{bottom:.1} {right:.1},{HEAD:.1}\"");
    assert!(drawn.contains(&line) && drawn.matches("<circle").count() == 3, "{drawn}");
    assert!(chart.shows_each_run());
}

#[test]
fn a_level_goes_across_if_its_value_goes_up_and_widens_the_axis() {
    let figures = figures(&[("a", 1.0), ("b", 2.0), ("high", 80.0)]);
    let chart = chart(&[["a", "b"]], &[("high", true)]);
    let drawn = chart.draw(&figures, 0.0);
    let wanted = format!("y1=\"{HEAD:.1}\" x2=\"{:.1}\" y2=\"{HEAD:.1}\"", WIDTH - RIGHT);
    assert!(drawn.contains(&wanted), "{drawn}");
    assert!(drawn.contains(">80<") && drawn.contains(">level high<"));
}

#[test]
fn marks_are_round_and_reach_the_largest_value() {
    for (value, end, step) in [(100.0, 100.0, 20.0), (2393.0, 2500.0, 500.0), (0.7, 0.7, 0.1)] {
        let axis = Axis::to(value);
        assert!((axis.end - end).abs() < 1e-9 && (axis.step - step).abs() < 1e-9, "{axis:?}");
    }
    assert_eq!(Axis::to(0.7).name(0.1), "0.1");
    assert!(Axis::to(0.0).end > 0.0 && Axis::to(f64::NAN).end > 0.0);
}

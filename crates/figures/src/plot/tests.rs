//! What a plot must show.
//!
//! Promise: looks for words and shapes, not for coordinates.
//! Never: compares with a stored picture.

use super::*;
use crate::figures::{Better, Figure};

fn drawn(scale: Scale) -> String {
    let mut figures = Figures::here("sample", "a <slow> disk", "none");
    let bar = |id: &str| Bar { label: id.to_uppercase(), colour: "#000000", id: id.into() };
    for (id, value) in [("ten", 10.0), ("hundred", 100.0), ("thousand", 1_000.0)] {
        figures.figures.push(Figure::of(id, "ns", Better::Lower, vec![value]));
    }
    let bars = ["ten", "hundred", "thousand", "missing"].map(bar).into();
    svg(&figures, &[Panel { title: "all of them".into(), scale, bars }])
}

/// Lengths of the bars, from the top.
fn lengths(drawn: &str) -> Vec<f64> {
    let bars = drawn.split("<rect x=").skip(1);
    let width = |bar: &str| bar.split('"').nth(5).and_then(|width| width.parse().ok());
    bars.filter_map(width).collect()
}

#[test]
fn every_figure_has_a_bar_and_words_are_escaped() {
    let drawn = drawn(Scale::Linear);
    assert_eq!(lengths(&drawn).len(), 4, "{drawn}");
    assert!(drawn.contains(">1000</text>") && drawn.contains(">10.00</text>"), "{drawn}");
    assert!(drawn.contains("a &lt;slow&gt; disk"), "{drawn}");
}

#[test]
fn ten_times_the_value_is_ten_times_the_length_or_one_step_more() {
    let linear = lengths(&drawn(Scale::Linear));
    assert!((linear[2] - 10.0 * linear[1]).abs() < 1.0, "{linear:?}");
    let steps = lengths(&drawn(Scale::Logarithmic(1.0)));
    assert!((steps[2] - steps[1] - (steps[1] - steps[0])).abs() < 1.0, "{steps:?}");
}

#[test]
fn a_figure_that_is_missing_has_the_shortest_bar() {
    for scale in [Scale::Linear, Scale::Logarithmic(1.0)] {
        let lengths = lengths(&drawn(scale));
        assert!((lengths[3] - 1.0).abs() < 1e-9, "{lengths:?}");
    }
}

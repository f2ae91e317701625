//! The plot: the median round trip of each way, as an SVG drawn by hand.
//!
//! Promise: bars on one logarithmic scale, each with its value; readable without scripts or fonts
//! from elsewhere.
//! Never: shows a figure that is not in the JSON.

use std::fmt::Write;

use crate::figures::Figures;
use crate::rounds::PLACES;
use crate::ways::ALL;

const WIDTH: f64 = 760.0;
const LABEL_WIDTH: f64 = 190.0;
const DECADE_WIDTH: f64 = 80.0;
const BAR_STEP: f64 = 28.0;
const PANEL_HEAD: f64 = 44.0;

/// Where the bars begin, in nanoseconds.
const LEAST_NS: f64 = 10.0;

/// Draws the figures.
pub(crate) fn svg(figures: &Figures) -> String {
    let panel = PANEL_HEAD + BAR_STEP * ALL.len() as f64 + 10.0;
    let height = panel * PLACES.len() as f64 + 30.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    for (number, (_, place)) in PLACES.iter().enumerate() {
        text.push_str(&draw(figures, place, panel * number as f64));
    }
    let note = format!("each step of the scale is ten times the last; {}", figures.date);
    text.push_str(&label(16.0, height - 16.0, "#666666", &note));
    text.push_str("</svg>\n");
    text
}

fn draw(figures: &Figures, place: &str, top: f64) -> String {
    let heading = format!("round trip, {}, median, microseconds", place.replace('_', " "));
    let mut text = label(16.0, top + 28.0, "#111111", &heading);
    let mut y = top + PANEL_HEAD;
    for (_, name) in ALL {
        let id = format!("{name}.{place}.p50_ns");
        let value = figures.get(&id).map_or(LEAST_NS, |figure| figure.value);
        let length = ((value / LEAST_NS).log10() * DECADE_WIDTH).max(1.0);
        let colour = if name.starts_with("queue") { "#1f7a4d" } else { "#8a8f98" };
        text.push_str(&label(16.0, y + 15.0, "#333333", &name.replace(".roundtrip", "")));
        let _infallible = writeln!(
            text,
            "<rect x=\"{LABEL_WIDTH}\" y=\"{y}\" width=\"{length:.1}\" height=\"20\" \
             fill=\"{colour}\"/>"
        );
        let shown = format!("{:.2}", value / 1e3);
        text.push_str(&label(LABEL_WIDTH + length + 6.0, y + 15.0, "#111111", &shown));
        y += BAR_STEP;
    }
    text
}

fn label(x: f64, y: f64, colour: &str, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{words}</text>\n")
}

//! The plot: transactions per second of each setting, as an SVG drawn by hand.
//!
//! Promise: bars on one linear scale that starts at zero, each with its value; readable on light
//! and dark pages and without scripts or fonts from elsewhere.
//! Never: shows a figure that is not in the JSON.

use std::fmt::Write;

use super::figures::Figures;

const WIDTH: f64 = 760.0;
const LABEL_WIDTH: f64 = 190.0;
const VALUE_WIDTH: f64 = 90.0;
const BAR_HEIGHT: f64 = 22.0;
const BAR_STEP: f64 = 30.0;
const PANEL_HEAD: f64 = 44.0;

/// Settings as they stand in the ids, with label and colour.
const SETTINGS: [(&str, &str, &str); 4] = [
    ("sync", "sync", "#8a8f98"),
    ("async", "synchronous_commit=off", "#c9a227"),
    ("holdfast", "Holdfast", "#1f7a4d"),
    ("tmpfs", "log in tmpfs (bound)", "#5b7db1"),
];

/// What a panel shows.
struct Panel {
    title: &'static str,
    clients: u32,
    measure: &'static str,
    unit: &'static str,
}

const PANELS: [Panel; 3] = [
    Panel { title: "1 client", clients: 1, measure: "tps", unit: "transactions/s" },
    Panel { title: "8 clients", clients: 8, measure: "tps", unit: "transactions/s" },
    Panel { title: "8 clients, 99th percentile", clients: 8, measure: "p99_ms", unit: "ms" },
];

/// Draws the figures.
pub(crate) fn svg(figures: &Figures) -> String {
    let panel_height = PANEL_HEAD + BAR_STEP * 4.0 + 10.0;
    let height = panel_height * 3.0 + 30.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let mut top = 0.0;
    for panel in PANELS {
        text.push_str(&draw(&panel, figures, top));
        top += panel_height;
    }
    let disk = escape(&figures.machine.disk);
    let note = format!("pgbench TPC-B; log disk {disk}; medians; {}", escape(&figures.date));
    text.push_str(&label(16.0, top + 14.0, "#666666", &note));
    text.push_str("</svg>\n");
    text
}

fn draw(panel: &Panel, figures: &Figures, top: f64) -> String {
    let value = |setting: &str| {
        let id = format!("postgres.c{}.{setting}.{}", panel.clients, panel.measure);
        figures.get(&id).map_or(0.0, |figure| figure.value)
    };
    let largest = SETTINGS.iter().map(|(id, ..)| value(id)).fold(f64::MIN_POSITIVE, f64::max);
    let scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / largest;
    let heading = format!("{}, {}", panel.title, panel.unit);
    let mut text = label(16.0, top + 28.0, "#111111", &heading);
    let mut y = top + PANEL_HEAD;
    for (id, name, colour) in SETTINGS {
        let (value, baseline) = (value(id), y + 16.0);
        let digits = if value < 100.0 { 2 } else { 0 };
        let length = (value * scale).max(1.0);
        text.push_str(&label(16.0, baseline, "#333333", name));
        let _infallible = writeln!(
            text,
            "<rect x=\"{LABEL_WIDTH}\" y=\"{y}\" width=\"{length:.1}\" height=\"{BAR_HEIGHT}\" \
             fill=\"{colour}\"/>"
        );
        let after = LABEL_WIDTH + length + 6.0;
        text.push_str(&label(after, baseline, "#111111", &format!("{value:.digits$}")));
        y += BAR_STEP;
    }
    text
}

fn label(x: f64, y: f64, colour: &str, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{words}</text>\n")
}

/// Text as it may stand between two tags.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;

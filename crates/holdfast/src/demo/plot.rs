//! The plot: bars by hand, as SVG.
//!
//! Promise: bars on one linear scale a panel that starts at zero, each with its value; readable on
//! light and dark pages and without scripts or fonts from elsewhere.
//! Never: shows a figure that is not in the JSON.

use std::fmt::Write;

use super::disks::Setting;
use super::figures::Figures;
use super::subject::{Subject, Words};
use crate::config::Way;

const WIDTH: f64 = 760.0;
const LABEL_WIDTH: f64 = 250.0;
const VALUE_WIDTH: f64 = 90.0;
const BAR_HEIGHT: f64 = 22.0;
const BAR_STEP: f64 = 30.0;
const PANEL_HEAD: f64 = 44.0;
const PANEL_FOOT: f64 = 10.0;

/// Some figures that are to be compared by eye.
pub(super) struct Panel {
    /// What is compared.
    pub(super) title: String,
    /// From the top.
    pub(super) bars: Vec<Bar>,
}

/// One figure.
pub(super) struct Bar {
    /// Name for people.
    pub(super) label: &'static str,
    /// Fill colour.
    pub(super) colour: &'static str,
    /// Id of the figure.
    pub(super) id: String,
}

/// The colour of a setting.
pub(super) fn colour(setting: Setting) -> &'static str {
    match setting {
        Setting::Sync => "#8a8f98",
        Setting::Async => "#c9a227",
        Setting::Holdfast(Way::Direct) => "#1f7a4d",
        Setting::Holdfast(Way::Queue) => "#7cb342",
        Setting::Tmpfs => "#5b7db1",
    }
}

/// A panel of rates for each case of a database, and one of its last case's latencies.
pub(super) fn panels(subject: &Subject) -> Vec<Panel> {
    let panel = |case: &str, title: String, measure: &str| {
        let bar = |words: &Words| Bar {
            label: words.title,
            colour: colour(words.setting),
            id: format!("{}.{case}.{}.{measure}", subject.id, words.id),
        };
        Panel { title, bars: subject.settings.iter().map(bar).collect() }
    };
    let rates = subject.cases.iter().map(|case| {
        panel(case.id, format!("{}, {}, transactions/s", subject.name, case.title), "tps")
    });
    let last = subject.cases.last().map(|case| {
        panel(case.id, format!("{}, {}, 99th percentile, ms", subject.name, case.title), "p99_ms")
    });
    rates.chain(last).collect()
}

/// Draws the figures.
pub(super) fn svg(figures: &Figures, panels: &[Panel]) -> String {
    let heights = panels.iter().map(Panel::height);
    let height = heights.sum::<f64>() + 30.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let mut top = 0.0;
    for panel in panels {
        text.push_str(&draw(panel, figures, top));
        top += panel.height();
    }
    let disk = escape(&figures.machine.disk);
    let note = format!("disk {disk}; medians; {}", escape(&figures.date));
    text.push_str(&label(16.0, top + 14.0, "#666666", &note));
    text.push_str("</svg>\n");
    text
}

impl Panel {
    fn height(&self) -> f64 {
        PANEL_HEAD + BAR_STEP * self.bars.len() as f64 + PANEL_FOOT
    }
}

fn draw(panel: &Panel, figures: &Figures, top: f64) -> String {
    let value = |bar: &Bar| figures.get(&bar.id).map_or(0.0, |figure| figure.value);
    let largest = panel.bars.iter().map(value).fold(f64::MIN_POSITIVE, f64::max);
    let scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / largest;
    let mut text = label(16.0, top + 28.0, "#111111", &escape(&panel.title));
    let mut y = top + PANEL_HEAD;
    for bar in &panel.bars {
        let (value, baseline, colour) = (value(bar), y + 16.0, bar.colour);
        let digits = if value < 100.0 { 2 } else { 0 };
        let length = (value * scale).max(1.0);
        text.push_str(&label(16.0, baseline, "#333333", &escape(bar.label)));
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
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;

//! The plot: bars by hand, as SVG.
//!
//! Promise: bars on one scale a panel, each with its value; readable on light and dark pages and
//! without scripts or fonts from elsewhere.
//! Never: shows a figure that is not in the JSON.

use std::fmt::Write;

use crate::chart::Chart;
use crate::figures::Figures;
use crate::text::{escape, label};

const WIDTH: f64 = 760.0;
const LABEL_WIDTH: f64 = 250.0;
const VALUE_WIDTH: f64 = 90.0;
const BAR_HEIGHT: f64 = 22.0;
const BAR_STEP: f64 = 30.0;
const PANEL_HEAD: f64 = 44.0;
const PANEL_FOOT: f64 = 10.0;

/// Some figures that are to be compared by eye.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What is compared, and in which unit.
    pub title: String,
    /// How long a bar is.
    pub scale: Scale,
    /// From the top.
    pub bars: Vec<Bar>,
}

/// How the length of a bar follows from its value.
#[derive(Clone, Copy, Debug)]
pub enum Scale {
    /// Twice the value, twice the length.
    Linear,
    /// Ten times the value, one step more; a bar of this value has no length.
    Logarithmic(f64),
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Name for people.
    pub label: String,
    /// Fill colour.
    pub colour: &'static str,
    /// Id of the figure.
    pub id: String,
}

/// Draws the figures.
#[must_use]
pub fn svg(figures: &Figures, panels: &[Panel]) -> String {
    with_charts(figures, panels, &[])
}

/// Draws the figures, charts first.
pub(crate) fn with_charts(figures: &Figures, panels: &[Panel], charts: &[Chart]) -> String {
    let heights = charts.iter().map(Chart::height).chain(panels.iter().map(Panel::height));
    let height = heights.sum::<f64>() + 30.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let mut top = 0.0;
    for chart in charts {
        text.push_str(&chart.draw(figures, top));
        top += chart.height();
    }
    for panel in panels {
        text.push_str(&draw(panel, figures, top));
        top += panel.height();
    }
    let disk = escape(&figures.machine.disk);
    let is_each_run = panels.is_empty() && charts.iter().all(Chart::shows_each_run);
    let shown = if is_each_run { "each run" } else { "medians" };
    let note = format!("disk {disk}; {shown}; {}", escape(&figures.date));
    text.push_str(&label(16.0, top + 14.0, "#666666", &note));
    text.push_str("</svg>\n");
    text
}

impl Panel {
    fn height(&self) -> f64 {
        PANEL_HEAD + BAR_STEP * self.bars.len() as f64 + PANEL_FOOT
    }
}

impl Scale {
    /// Which part of the longest bar a value gets.
    fn part(self, value: f64, largest: f64) -> f64 {
        match self {
            Scale::Linear => value / largest,
            Scale::Logarithmic(least) => (value / least).log10() / (largest / least).log10(),
        }
    }

    /// The heading with a word about a scale that the eye would take for another.
    fn heading(self, title: &str) -> String {
        match self {
            Scale::Linear => escape(title),
            Scale::Logarithmic(_) => escape(title) + " (logarithmic)",
        }
    }
}

fn draw(panel: &Panel, figures: &Figures, top: f64) -> String {
    let value = |bar: &Bar| figures.get(&bar.id).map_or(0.0, |figure| figure.value);
    let largest = panel.bars.iter().map(value).fold(f64::MIN_POSITIVE, f64::max);
    let mut text = label(16.0, top + 28.0, "#111111", &panel.scale.heading(&panel.title));
    let mut y = top + PANEL_HEAD;
    for bar in &panel.bars {
        let (value, baseline, colour) = (value(bar), y + 16.0, bar.colour);
        let digits = if value < 100.0 { 2 } else { 0 };
        let part = panel.scale.part(value, largest);
        let length = (part * (WIDTH - LABEL_WIDTH - VALUE_WIDTH)).max(1.0);
        text.push_str(&label(16.0, baseline, "#333333", &escape(&bar.label)));
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

#[cfg(test)]
mod tests;

//! The other plot: lines over two axes, as SVG.
//!
//! Promise: a point is two figures of the JSON, or a run of each of two, one for each axis; both
//! axes begin at 0 and are linear; dashed lines show single figures.
//! Never: draws between points anything but a straight line.

use std::fmt::Write;

use crate::figures::Figures;
use crate::text::{escape, label};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 30.0;
const HEAD: f64 = 44.0;
const AREA_HEIGHT: f64 = 320.0;
const AXIS_HEIGHT: f64 = 48.0;
const LEGEND_STEP: f64 = 20.0;
const FOOT: f64 = 16.0;

/// Steps of an axis, at most.
const STEPS_MAX: f64 = 8.0;

/// Lines that are to be compared by eye.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What is compared.
    pub title: String,
    /// What goes to the right, and its unit.
    pub across: String,
    /// What goes up, and its unit.
    pub up: String,
    /// In the order of the legend.
    pub lines: Vec<Line>,
    /// Figures that stand alone.
    pub levels: Vec<Level>,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Name for people.
    pub label: String,
    /// Its colour.
    pub colour: &'static str,
    /// Where it goes.
    pub points: Points,
}

/// The points of a line, each with what goes to the right and what goes up.
#[derive(Clone, Debug)]
pub enum Points {
    /// Ids of two figures, point by point.
    Figures(Vec<[String; 2]>),
    /// Ids of two figures whose runs are the points, in order.
    Runs([String; 2]),
}

/// A figure that is a line along one axis.
#[derive(Clone, Debug)]
pub struct Level {
    /// Name for people.
    pub label: String,
    /// Its colour.
    pub colour: &'static str,
    /// Id of the figure.
    pub id: String,
    /// Whether its value goes up, so that the line goes across.
    pub is_up: bool,
}

/// One axis: its end, and the distance of its marks.
#[derive(Clone, Copy, Debug)]
struct Axis {
    end: f64,
    step: f64,
}

/// Where values lie on the page.
struct Area<'a> {
    chart: &'a Chart,
    figures: &'a Figures,
    across: Axis,
    up: Axis,
    top: f64,
}

impl Chart {
    pub(crate) fn height(&self) -> f64 {
        let legend = LEGEND_STEP * (self.lines.len() + self.levels.len()) as f64;
        HEAD + AREA_HEIGHT + AXIS_HEIGHT + legend + FOOT
    }

    /// Whether no point is the median of several runs.
    pub(crate) fn shows_each_run(&self) -> bool {
        let is_of_runs = |line: &Line| matches!(line.points, Points::Runs(_));
        self.levels.is_empty() && self.lines.iter().all(is_of_runs)
    }

    pub(crate) fn draw(&self, figures: &Figures, top: f64) -> String {
        let area = Area::new(self, figures, top + HEAD);
        let mut text = label(16.0, top + 28.0, "#111111", &escape(&self.title));
        text.push_str(&area.axes());
        self.levels.iter().for_each(|level| text.push_str(&area.level(level)));
        self.lines.iter().for_each(|line| text.push_str(&area.line(line)));
        text.push_str(&area.legend());
        text
    }
}

impl Points {
    /// The ids of all figures that it is drawn from.
    pub fn ids(&self) -> impl Iterator<Item = &String> {
        let pairs = match self {
            Points::Figures(ids) => &ids[..],
            Points::Runs(ids) => std::slice::from_ref(ids),
        };
        pairs.iter().flatten()
    }

    /// Those whose figures are there.
    fn places(&self, figures: &Figures) -> Vec<[f64; 2]> {
        let value = |id: &String| figures.get(id).map(|figure| figure.value);
        match self {
            Points::Figures(ids) => {
                ids.iter().filter_map(|[across, up]| Some([value(across)?, value(up)?])).collect()
            }
            Points::Runs([across, up]) => {
                let runs = |id| figures.get(id).map_or(&[][..], |figure| &figure.runs);
                runs(across).iter().zip(runs(up)).map(|(across, up)| [*across, *up]).collect()
            }
        }
    }
}

impl Axis {
    /// An axis that reaches the value, with marks at 1, 2 or 5 times a power of ten.
    fn to(value: f64) -> Axis {
        let value = if value > 0.0 { value } else { 1.0 };
        let least = value / STEPS_MAX;
        let power = 10_f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|of| of * power).into_iter().find(|it| *it >= least);
        let step = step.unwrap_or(10.0 * power);
        Axis { end: (value / step).ceil() * step, step }
    }

    fn marks(self) -> impl Iterator<Item = f64> {
        (0..=(self.end / self.step).round() as u32).map(move |mark| f64::from(mark) * self.step)
    }

    fn name(self, mark: f64) -> String {
        let digits = if self.step < 1.0 { (-self.step.log10()).ceil() as usize } else { 0 };
        format!("{mark:.digits$}")
    }
}

impl<'a> Area<'a> {
    fn new(chart: &'a Chart, figures: &'a Figures, top: f64) -> Area<'a> {
        let value = |id: &String| figures.get(id).map_or(0.0, |figure| figure.value);
        let largest = |which: usize| {
            let points = chart.lines.iter().flat_map(|line| line.points.places(figures));
            let points = points.map(|point| point[which]);
            let levels = chart.levels.iter().filter(|level| usize::from(level.is_up) == which);
            points.chain(levels.map(|level| value(&level.id))).fold(0.0, f64::max)
        };
        Area { chart, figures, across: Axis::to(largest(0)), up: Axis::to(largest(1)), top }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + value / self.across.end * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        self.top + AREA_HEIGHT - value / self.up.end * AREA_HEIGHT
    }

    fn value(&self, id: &str) -> Option<f64> {
        self.figures.get(id).map(|figure| figure.value)
    }

    fn axes(&self) -> String {
        let (left, right) = (self.x(0.0), self.x(self.across.end));
        let (bottom, top) = (self.y(0.0), self.y(self.up.end));
        let mut text = String::new();
        for mark in self.up.marks() {
            let y = self.y(mark);
            text.push_str(&stroke([left, y, right, y], "#e2e2e2", ""));
            text.push_str(&label(16.0, y + 4.0, "#333333", &self.up.name(mark)));
        }
        for mark in self.across.marks() {
            let x = self.x(mark);
            text.push_str(&stroke([x, bottom, x, top], "#e2e2e2", ""));
            text.push_str(&label(x - 12.0, bottom + 18.0, "#333333", &self.across.name(mark)));
        }
        let (up, across) = (escape(&self.chart.up), escape(&self.chart.across));
        let words = format!("up: {up}; to the right: {across}");
        text + &label(LEFT, bottom + 40.0, "#333333", &words)
    }

    fn level(&self, level: &Level) -> String {
        let Some(value) = self.value(&level.id) else { return String::new() };
        let ends = match level.is_up {
            true => [self.x(0.0), self.y(value), self.x(self.across.end), self.y(value)],
            false => [self.x(value), self.y(0.0), self.x(value), self.y(self.up.end)],
        };
        stroke(ends, level.colour, DASHED)
    }

    fn line(&self, line: &Line) -> String {
        let mut path = String::new();
        let mut dots = String::new();
        for [across, up] in line.points.places(self.figures) {
            let (x, y, colour) = (self.x(across), self.y(up), line.colour);
            let _infallible = write!(path, "{x:.1},{y:.1} ");
            let _infallible =
                writeln!(dots, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{colour}\"/>");
        }
        let (path, colour) = (path.trim_end(), line.colour);
        format!(
            "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
             {dots}"
        )
    }

    fn legend(&self) -> String {
        let lines = self.chart.lines.iter().map(|line| (&line.label, line.colour, ""));
        let levels = self.chart.levels.iter().map(|it| (&it.label, it.colour, DASHED));
        let mut text = String::new();
        let mut y = self.top + AREA_HEIGHT + AXIS_HEIGHT + LEGEND_STEP / 2.0;
        for (words, colour, dashes) in lines.chain(levels) {
            text.push_str(&stroke([LEFT, y, LEFT + 30.0, y], colour, dashes));
            text.push_str(&label(LEFT + 40.0, y + 4.0, "#333333", &escape(words)));
            y += LEGEND_STEP;
        }
        text
    }
}

const DASHED: &str = " stroke-dasharray=\"6 4\"";

fn stroke([x1, y1, x2, y2]: [f64; 4], colour: &str, dashes: &str) -> String {
    format!(
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" \
         stroke-width=\"1.5\"{dashes}/>\n"
    )
}

#[cfg(test)]
mod tests;

//! From samples and kills to figures, and to the table that is printed.
//!
//! Promise: a ratio is taken within a repetition, between runs that stand side by side; its value
//! is the median over the repetitions. The table says what an acknowledgement meant.
//! Never: rounds a figure; only the table does.

use std::fmt::Write;

use holdfast_figures::{Better, Figure, Figures};

use super::disks::Setting;
use super::killed::Killed;
use super::kills::{Kill, Victim};
use super::measure::Sample;
use super::subject::{Goal, Subject, rate};
use super::volume::Part;

/// A question about one sample.
type Measure = fn(&Sample) -> f64;

/// Everything that measuring and killing one database has shown.
pub(super) fn figures(
    subject: &Subject,
    samples: &[Sample],
    kills: &[Kill],
    canary_lost: u64,
) -> Vec<Figure> {
    let mut all: Vec<Figure> =
        subject.goals.iter().map(|goal| ratio(subject, goal, samples)).collect();
    all.extend(rows(subject, samples));
    if !kills.is_empty() {
        all.extend(kill_figures(&Killed { id: subject.id.into(), kills }));
    }
    let id = format!("{}.kills.{}", subject.id, subject.canary_id);
    all.push(Figure::of(id, "transactions", Better::Lower, vec![canary_lost as f64]));
    all
}

/// One setting over its peer, one value per repetition.
fn ratio(subject: &Subject, goal: &Goal, samples: &[Sample]) -> Figure {
    let ours = values(samples, goal.ours, goal.case, goal.measure);
    let theirs = values(samples, goal.peer, goal.case, goal.measure);
    let runs = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    let id = format!("{}.{}", subject.id, goal.id);
    let peer = subject.words(goal.peer).title;
    Figure { goal: goal.goal, ..Figure::of(id, "ratio", goal.better, runs).beside(peer) }
}

/// One value per repetition, in the order of the repetitions.
fn values(samples: &[Sample], setting: Setting, case: &str, measure: Measure) -> Vec<f64> {
    let mut of: Vec<&Sample> =
        samples.iter().filter(|sample| sample.setting == setting && sample.case == case).collect();
    of.sort_by_key(|sample| sample.repetition);
    of.into_iter().map(measure).collect()
}

/// The absolute rows behind the ratios.
fn rows(subject: &Subject, samples: &[Sample]) -> Vec<Figure> {
    let mut rows = Vec::new();
    for case in subject.cases {
        for words in subject.settings {
            let mut row = |name: &str, unit, better, measure: Measure| {
                let id = format!("{}.{}.{}.{name}", subject.id, case.id, words.id);
                let runs = values(samples, words.setting, case.id, measure);
                rows.push(Figure::of(id, unit, better, runs));
            };
            row("tps", "transactions/s", Better::Higher, rate);
            row("p50_ms", "ms", Better::Lower, |sample| sample.p50_ms);
            row("p99_ms", "ms", Better::Lower, |sample| sample.p99_ms);
        }
    }
    rows
}

/// The kills of a database and of the front end in turn.
fn kill_figures(killed: &Killed<'_>) -> Vec<Figure> {
    let mut all = killed.figures();
    let front_end = |victim| victim == Victim::Part(Part::FrontEnd);
    all.push(killed.failed("front_end.failed"));
    all.push(killed.longest("front_end.stall_max_ms", front_end));
    all.push(killed.longest("server.recovery_max_ms", |victim| victim == Victim::Database));
    all
}

/// The tables of one database for people: settings, and what kills did.
pub(super) fn tables(subject: &Subject, figures: &Figures) -> String {
    settings_table(subject, figures) + &kills_paragraph(subject, figures)
}

/// The table of the settings.
pub(super) fn settings_table(subject: &Subject, figures: &Figures) -> String {
    let mut text = String::new();
    let Subject { name, load, .. } = subject;
    line(&mut text, format_args!("{name}, {load}, disk {}", figures.machine.disk));
    let mut heads = String::new();
    for case in subject.cases {
        let _infallible = write!(heads, "{:>14}{:>10}", format!("{}/s", case.title), "p99 ms");
    }
    line(&mut text, format_args!("{:<34}{heads}  a power cut may lose", subject.place));
    for words in subject.settings {
        let mut cells = String::new();
        for case in subject.cases {
            let value = |name: &str| {
                let id = format!("{}.{}.{}.{name}", subject.id, case.id, words.id);
                figures.get(&id).map_or(f64::NAN, |figure| figure.value)
            };
            let _infallible = write!(cells, "{:>14.0}{:>10.2}", value("tps"), value("p99_ms"));
        }
        line(&mut text, format_args!("{:<34}{cells}  {}", words.title, words.risk));
    }
    text.push('\n');
    text
}

/// Every figure with a goal, and what an acknowledgement meant.
pub(super) fn goals_table(figures: &Figures) -> String {
    let mut text = String::new();
    for figure in &figures.figures {
        if let (Some(goal), Some(met)) = (figure.goal, figure.met()) {
            let bound = if figure.better == Better::Higher { "at least" } else { "at most" };
            let word = if met { "met" } else { "MISSED" };
            line(
                &mut text,
                format_args!(
                    "{:<40}{:>10.3}   goal {bound} {goal:<5} {word}",
                    figure.id, figure.value
                ),
            );
        }
    }
    line(&mut text, format_args!("\nAn acknowledgement meant: {}.", figures.class));
    text
}

fn kills_paragraph(subject: &Subject, figures: &Figures) -> String {
    let value =
        |id: &str| figures.get(&format!("{}.kills.{id}", subject.id)).map(|figure| figure.value);
    let (Some(count), Some(lost)) = (value("count"), value("lost")) else {
        return String::new();
    };
    let of = |id| value(id).unwrap_or(f64::NAN);
    format!(
        "{count:.0} kills under load: {:.0} transactions acknowledged, {lost:.0} lost, \
         {:.0} failed at a front end's death;\n\
         longest stall {:.0} ms, longest recovery of {name} {:.0} ms, \
         complaints of the checks: {:.0}.\n\
         {canary} lost {:.0} acknowledged transactions.\n\n",
        of("acknowledged"),
        of("front_end.failed"),
        of("front_end.stall_max_ms"),
        of("server.recovery_max_ms"),
        of("complaints"),
        of(subject.canary_id),
        name = subject.name,
        canary = subject.canary,
    )
}

/// Appends one line; a string takes every line.
fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _infallible = writeln!(text, "{arguments}");
}

#[cfg(test)]
mod tests;

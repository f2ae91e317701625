//! From samples and kills to figures, and to the table that is printed.
//!
//! Promise: a ratio is taken within a repetition, between runs that stand side by side; its value
//! is the median over the repetitions. The table says what an acknowledgement meant.
//! Never: rounds a figure; only the table does.

use std::fmt::Write;

use super::kills::{Kill, Victim};
use super::measure::{CLIENTS, Sample};
use super::settings::{MEGABYTES_PER_S, Setting, TURNS_PER_MINUTE};
use crate::demo::figures::{Better, Figure, Figures};

/// A question about one sample.
type Measure = fn(&Sample) -> f64;

/// Everything the run has shown. `class` is what an acknowledgement of the volume meant.
pub(super) fn figures(samples: &[Sample], kills: &[Kill], async_lost: u64, class: &str) -> Figures {
    let disk = format!("model: {TURNS_PER_MINUTE} turns per minute, {MEGABYTES_PER_S} MB/s");
    let mut all = Figures::here("postgres", &disk, class);
    all.figures.extend(ratios(samples));
    all.figures.extend(rows(samples));
    if !kills.is_empty() {
        all.figures.extend(kill_figures(kills));
    }
    let (id, lost) = ("postgres.kills.async_lost", vec![async_lost as f64]);
    all.figures.push(Figure::of(id, "transactions", Better::Lower, lost));
    all
}

fn ratios(samples: &[Sample]) -> Vec<Figure> {
    let rate: Measure = |sample| sample.per_second;
    let p99: Measure = |sample| sample.p99_ms;
    let ratio = |id: &str, clients, measure, peer: Setting, better, goal| {
        let runs = over(samples, clients, measure, peer);
        Figure::of(id, "ratio", better, runs).against(goal, peer.title())
    };
    let (higher, lower) = (Better::Higher, Better::Lower);
    vec![
        ratio("postgres.c1.holdfast_over_sync", 1, rate, Setting::Sync, higher, 12.0),
        ratio("postgres.c8.holdfast_over_sync", 8, rate, Setting::Sync, higher, 15.0),
        ratio("postgres.c8.holdfast_over_async", 8, rate, Setting::Async, higher, 0.9),
        ratio("postgres.c8.holdfast_over_tmpfs", 8, rate, Setting::Tmpfs, higher, 0.7),
        ratio("postgres.c8.p99_over_sync", 8, p99, Setting::Sync, lower, 0.1),
    ]
}

/// Holdfast over a peer, one value per repetition.
fn over(samples: &[Sample], clients: u32, measure: Measure, peer: Setting) -> Vec<f64> {
    let ours = values(samples, Setting::Holdfast, clients, measure);
    let theirs = values(samples, peer, clients, measure);
    ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()
}

/// One value per repetition, in the order of the repetitions.
fn values(samples: &[Sample], setting: Setting, clients: u32, measure: Measure) -> Vec<f64> {
    let mut of: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.setting == setting && sample.clients == clients)
        .collect();
    of.sort_by_key(|sample| sample.repetition);
    of.into_iter().map(measure).collect()
}

/// The absolute rows behind the ratios.
fn rows(samples: &[Sample]) -> Vec<Figure> {
    let mut rows = Vec::new();
    for clients in CLIENTS {
        for setting in Setting::ALL {
            let mut row = |name: &str, unit, better, measure: Measure| {
                let id = format!("postgres.c{clients}.{}.{name}", setting.id());
                rows.push(Figure::of(id, unit, better, values(samples, setting, clients, measure)));
            };
            row("tps", "transactions/s", Better::Higher, |sample| sample.per_second);
            row("p50_ms", "ms", Better::Lower, |sample| sample.p50_ms);
            row("p99_ms", "ms", Better::Lower, |sample| sample.p99_ms);
        }
    }
    rows
}

fn kill_figures(kills: &[Kill]) -> Vec<Figure> {
    let sum = |of: fn(&Kill) -> u64| vec![kills.iter().map(of).sum::<u64>() as f64];
    let longest = |victim| {
        let stalls = kills.iter().filter(|kill| kill.victim == victim).map(|kill| kill.stall_ms);
        vec![stalls.fold(0.0, f64::max)]
    };
    let zero = |id: &str, unit, runs| {
        Figure::of(id, unit, Better::Lower, runs).against(0.0, "what was acknowledged")
    };
    let (lower, higher) = (Better::Lower, Better::Higher);
    let complaints = sum(|kill| u64::from(!kill.complaint.is_empty()));
    vec![
        Figure::of("postgres.kills.count", "kills", higher, sum(|_| 1)),
        Figure::of("postgres.kills.acknowledged", "transactions", higher, sum(|k| k.acknowledged)),
        zero("postgres.kills.lost", "transactions", sum(|kill| kill.lost)),
        zero("postgres.kills.front_end.failed", "transactions", sum(|kill| kill.failed)),
        zero("postgres.kills.complaints", "kills", complaints),
        Figure::of("postgres.kills.front_end.stall_max_ms", "ms", lower, longest(Victim::FrontEnd)),
        Figure::of("postgres.kills.server.recovery_max_ms", "ms", lower, longest(Victim::Server)),
    ]
}

/// The table for people.
pub(super) fn table(figures: &Figures) -> String {
    let mut text = settings_table(figures);
    text.push_str(&goals_table(figures));
    text.push_str(&kills_paragraph(figures));
    line(&mut text, format_args!("An acknowledgement meant: {}.", figures.class));
    text
}

fn settings_table(figures: &Figures) -> String {
    let mut text = String::new();
    line(&mut text, format_args!("PostgreSQL, pgbench TPC-B, log disk {}", figures.machine.disk));
    line(
        &mut text,
        format_args!(
            "{:<24}{:>12}{:>12}{:>12}{:>12}  a power cut may lose",
            "pg_wal", "1 client/s", "p99 ms", "8 clients/s", "p99 ms"
        ),
    );
    for setting in Setting::ALL {
        let value = |clients: u32, name: &str| {
            let id = format!("postgres.c{clients}.{}.{name}", setting.id());
            figures.get(&id).map_or(f64::NAN, |figure| figure.value)
        };
        let (one, one_p99) = (value(1, "tps"), value(1, "p99_ms"));
        let (eight, eight_p99) = (value(8, "tps"), value(8, "p99_ms"));
        line(
            &mut text,
            format_args!(
                "{:<24}{one:>12.0}{one_p99:>12.2}{eight:>12.0}{eight_p99:>12.2}  {}",
                setting.title(),
                setting.risk()
            ),
        );
    }
    text.push('\n');
    text
}

fn goals_table(figures: &Figures) -> String {
    let mut text = String::new();
    for figure in &figures.figures {
        if let (Some(goal), Some(met)) = (figure.goal, figure.met()) {
            let (bound, word) = match figure.better {
                Better::Higher => ("at least", if met { "met" } else { "MISSED" }),
                Better::Lower => ("at most", if met { "met" } else { "MISSED" }),
            };
            line(
                &mut text,
                format_args!(
                    "{:<36}{:>10.3}   goal {bound} {goal:<5} {word}",
                    figure.id, figure.value
                ),
            );
        }
    }
    text.push('\n');
    text
}

fn kills_paragraph(figures: &Figures) -> String {
    let value = |id: &str| figures.get(&format!("postgres.kills.{id}")).map(|figure| figure.value);
    let (Some(count), Some(lost)) = (value("count"), value("lost")) else {
        return String::new();
    };
    let of = |id| value(id).unwrap_or(f64::NAN);
    format!(
        "{count:.0} kills under load: {:.0} transactions acknowledged, {lost:.0} lost, \
         {:.0} failed at a front end's death;\n\
         longest stall {:.0} ms, longest recovery of PostgreSQL {:.0} ms, \
         complaints of the checks: {:.0}.\n\
         The same kill of PostgreSQL with synchronous_commit=off lost {:.0} acknowledged \
         transactions.\n\n",
        of("acknowledged"),
        of("front_end.failed"),
        of("front_end.stall_max_ms"),
        of("server.recovery_max_ms"),
        of("complaints"),
        of("async_lost"),
    )
}

/// Appends one line; a string takes every line.
fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _infallible = writeln!(text, "{arguments}");
}

#[cfg(test)]
mod tests;

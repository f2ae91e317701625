//! `holdfast plan curve`.
//!
//! Promise: a line for each interval, from none to very short ones.
//! Never: chooses one.

use super::printed::{say, steady_json, system_json, system_text, write};
use super::system;
use crate::cli::plan::System;
use crate::output::{Output, Progress};
use holdfast_config::problem::Outcome;
use holdfast_plan::{Configuration, Curve, Effort, Steady, drawn};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Simulates many intervals.
pub(super) fn curve(system: System, out: Option<&Path>, output: Output) -> Outcome<()> {
    let configuration = system::configuration(system)?;
    let mut progress = Progress::new();
    let curve = Curve::of(&configuration, Effort::FULL, |done, all| {
        say(&mut progress, "interval", done, all)
    });
    drop(progress);
    if let Some(out) = out {
        write("plan-curve", drawn::curve("Recovery time and request time", &curve), out)?;
    }
    let head = system_text(&configuration, Effort::FULL);
    output.result(&json(&configuration, &curve), &(head + &table(&curve)));
    Ok(())
}

/// Every interval with what it comes to.
fn lines(curve: &Curve) -> impl Iterator<Item = (Option<u64>, &Steady)> {
    let points = curve.points.iter().map(|point| (Some(point.interval), &point.steady));
    std::iter::once((None, &curve.without_checkpoints)).chain(points)
}

fn table(curve: &Curve) -> String {
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>12} {:>12} {:>12}\n{:>12} {:>14} {:>10} {:>12} {:>12} {:>12}\n",
        "checkpoint",
        "request time",
        "paging",
        "checkpoints",
        "recovery",
        "on average",
        "after",
        "cycles",
        "cycles",
        "cycles",
        "megacycles",
        "megacycles",
    );
    for (interval, steady) in lines(curve) {
        let interval = interval.map_or("never".to_owned(), |requests| requests.to_string());
        let _infallible = writeln!(
            text,
            "{interval:>12} {:>14.0} {:>10.0} {:>12.0} {:>12.1} {:>12.1}",
            steady.request_cycles(),
            steady.paging_cycles,
            steady.checkpoint_cycles,
            steady.recovery_cycles / 1e6,
            steady.recovery_mean_cycles / 1e6,
        );
    }
    text
}

fn json(configuration: &Configuration, curve: &Curve) -> Value {
    let lines = lines(curve).map(|(interval, steady)| steady_json(interval, steady));
    json!({ "system": system_json(configuration), "intervals": lines.collect::<Vec<_>>() })
}

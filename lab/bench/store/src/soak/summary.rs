//! What the samples of a soak come to.
//!
//! Promise: the first sixth of the samples is a warm-up and nothing is taken from it; what is asked
//! of this store stands beside its figures, and every sample behind them.
//! Never: measures.

use std::path::Path;

use holdfast_bench_common::colours::OWN;
use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::output;
use holdfast_figures::{Chart, Figure, Figures, Line, Points, median};

use super::loads::Load;
use super::{Sample, Soaked};
use crate::Failure;
use crate::peers::{self, OURS};

/// Parts that the samples are cut into.
const PARTS: usize = 6;

/// What the end must keep of the throughput after the warm-up, and may take of its room or memory.
const LAST_OVER_FIRST: f64 = 0.9;
const GROWTH: f64 = 1.2;

/// Name of the files.
const NAME: &str = "store-soak";

/// Colours of the stores, in their order, of which ours is the first.
const COLOURS: [&str; 5] = [OWN, "#d1495b", "#3d9a5f", "#e0952f", "#7d5ba6"];

/// What is measured in bytes is shown in these.
const MIB: f64 = (1 << 20) as f64;

/// The figures of a store.
pub(crate) fn figures(soaked: &Soaked) -> Vec<Figure> {
    let mut ledger = Ledger::default();
    let id = |what: &str| format!("store.soak.{}.{what}", soaked.kind.name);
    let all = |of: &dyn Fn(&Sample) -> f64| soaked.samples.iter().map(of).collect::<Vec<f64>>();
    for (at, load) in Load::ALL.into_iter().enumerate() {
        let id = |what: &str| id(&format!("{}.{what}", load.name()));
        let (rates, bytes) = (all(&|it| it.per_s[at]), all(&|it| it.bytes[at] / MIB));
        if let Some([first, last]) = parts(&rates) {
            ledger.higher(id("last_over_first"), "ratio", mean(last) / mean(first));
        }
        if let Some([first, last]) = parts(&bytes) {
            let last = median(last);
            ledger.lower(id("bytes_growth"), "ratio", last / median(first));
            ledger.lower(id("over_live"), "ratio", last * MIB / soaked.live[at]);
        }
        rates.into_iter().for_each(|rate| ledger.higher(id("tx_per_s"), "tx/s", rate));
        bytes.into_iter().for_each(|mib| ledger.lower(id("allocated_mib"), "MiB", mib));
    }
    let resident = all(&|it| it.resident / MIB);
    if let Some([first, last]) = parts(&resident) {
        ledger.lower(id("memory_growth"), "ratio", median(last) / median(first));
    }
    resident.into_iter().for_each(|mib| ledger.lower(id("resident_mib"), "MiB", mib));
    all(&|it| it.at_s / 60.0).into_iter().for_each(|it| ledger.higher(id("minutes"), "min", it));
    let figures = ledger.figures().into_iter().map(|figure| figure.acknowledged_by("Disk"));
    figures.map(|figure| with_goal(figure, soaked.kind.name)).collect()
}

/// The part after the warm-up, and the last one; nothing if there are too few for that.
fn parts(values: &[f64]) -> Option<[&[f64]; 2]> {
    let part = values.len() / PARTS;
    (part > 0).then(|| [&values[part..2 * part], &values[values.len() - part..]])
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn with_goal(figure: Figure, name: &str) -> Figure {
    match figure.id.rsplit('.').next() {
        _ if name != OURS => figure,
        Some("last_over_first") => figure.wanted(LAST_OVER_FIRST),
        Some("bytes_growth" | "memory_growth") => figure.wanted(GROWTH),
        _ => figure,
    }
}

/// Writes what a store came to beside what is written of others.
pub(crate) fn keep(soaked: &Soaked, folder: &Path, disk: &str) -> Result<(), Failure> {
    let class = "every commit survives process, os and power";
    let mut all = Figures::here(NAME, disk, class);
    let of_it = format!("store.soak.{}.", soaked.kind.name);
    let before = Figures::read(folder, NAME)?.map_or(Vec::new(), |before| before.figures);
    all.figures.extend(before.into_iter().filter(|figure| !figure.id.starts_with(&of_it)));
    all.figures.extend(figures(soaked));
    all.figures.sort_by_key(|figure| figure.goal.is_none());
    all.write_with_charts(folder, &[], &charts(&all))?;
    all.figures.retain(|figure| figure.id.starts_with(&of_it));
    output::table(&all);
    Ok(())
}

/// Charts over time: of each load what it did and what it took, and the memory of all of them.
fn charts(figures: &Figures) -> Vec<Chart> {
    let of_load = |load: Load| {
        let (name, title) = (load.name(), load.title());
        [
            chart(figures, [title, "transactions/s"], &format!("{name}.tx_per_s")),
            chart(figures, [title, "allocated MiB"], &format!("{name}.allocated_mib")),
        ]
    };
    let memory = ["the process of all four", "resident MiB"];
    let memory = chart(figures, memory, "resident_mib");
    Load::ALL.into_iter().flat_map(of_load).chain([memory]).collect()
}

fn chart(figures: &Figures, [title, up]: [&str; 2], what: &str) -> Chart {
    let names = peers::all().filter(|kind| kind.has_entries).map(|kind| kind.name);
    let id = |name: &str, what: &str| format!("store.soak.{name}.{what}");
    let line = |(name, colour): (&'static str, &'static str)| {
        let points = Points::Runs([id(name, "minutes"), id(name, what)]);
        Line { label: name.into(), colour, points }
    };
    let measured = names.zip(COLOURS).filter(|(name, _)| figures.get(&id(name, what)).is_some());
    let (title, across) = (format!("{title}: {up}"), "minutes".into());
    Chart { title, across, up: up.into(), lines: measured.map(line).collect(), levels: Vec::new() }
}

#[cfg(test)]
mod tests;

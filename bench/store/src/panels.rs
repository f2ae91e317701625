//! What is to be compared by eye.
//!
//! Promise: a panel a workload, a bar a store that has the figure.
//! Never: shows what was not measured.

use holdfast_bench_common::colours::{OTHER, OWN};
use holdfast_figures::{Bar, Figures, Panel, Scale};

use crate::effort::THREADS;
use crate::peers::{self, OURS};

/// Every panel.
pub(crate) fn all(figures: &Figures) -> Vec<Panel> {
    let panel = |(title, begin, what, scale): (String, String, &str, Scale)| {
        let bars = bars(figures, &begin, what);
        (!bars.is_empty()).then_some(Panel { title, scale, bars })
    };
    workloads().into_iter().filter_map(panel).collect()
}

/// The title, the beginning and the end of the ids of each, and how its bars are drawn.
fn workloads() -> Vec<(String, String, &'static str, Scale)> {
    let mut all = Vec::new();
    for threads in THREADS {
        let title = format!("TPC-B, durable, {threads} clients, transactions/s");
        all.push((title, format!("store.durable.t{threads}"), "tx_per_s", Scale::Linear));
    }
    let unsynced = "store.nondurable";
    let title = "TPC-B, not durable, 2 clients, transactions/s";
    all.push((title.into(), unsynced.into(), "tx_per_s", Scale::Linear));
    let title = "the same, transactions per second of a processor";
    all.push((title.into(), unsynced.into(), "tx_per_cpu_s", Scale::Linear));
    let title = "from the start of a process after a kill to its first transaction, ms";
    all.push((title.into(), "store.restart".into(), "first_tx_ms", Scale::Logarithmic(1.0)));
    all
}

fn bars(figures: &Figures, begin: &str, what: &str) -> Vec<Bar> {
    let bar = |name: &str| {
        let id = format!("{begin}.{name}.{what}");
        let colour = if name == OURS { OWN } else { OTHER };
        figures.get(&id).is_some().then(|| Bar { label: name.into(), colour, id })
    };
    peers::all().filter_map(|kind| bar(kind.name)).collect()
}

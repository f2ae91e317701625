//! What is to be compared by eye.
//!
//! Promise: a panel a workload, a bar a log that has the figure.
//! Never: shows what was not measured.

use holdfast_bench_common::colours::{LIMIT, OTHER, OWN};
use holdfast_figures::{Bar, Figures, Panel, Scale};

use crate::effort::{SETS, THREADS};
use crate::peers::{Kind, OURS};

/// Every panel.
pub(crate) fn all(figures: &Figures, kinds: &[&'static Kind]) -> Vec<Panel> {
    let panel = |(title, begin, what): (String, String, &str)| {
        let bars = bars(figures, kinds, &begin, what);
        (!bars.is_empty()).then_some(Panel { title, scale: Scale::Linear, bars })
    };
    workloads().into_iter().filter_map(panel).collect()
}

/// The title, the beginning and the end of the ids of each.
fn workloads() -> Vec<(String, String, &'static str)> {
    const RATE: &str = "records_per_s";
    let plural = |set: usize| if set == 1 { "" } else { "s" };
    let mut all = Vec::new();
    for set in SETS {
        let title = format!("a sync a set of {set} record{}, 1 thread, records/s", plural(set));
        all.push((title, format!("log.sync.t1.set{set}"), RATE));
    }
    for threads in THREADS {
        let title = format!("a durable set of 1 record each, {threads} threads, records/s");
        all.push((title, format!("log.sync.t{threads}"), RATE));
    }
    all.push(("appended without a sync, records/s".into(), "log.nosync".into(), RATE));
    let title = "the same until all are durable, records/s";
    all.push((title.into(), "log.nosync".into(), "durable_records_per_s"));
    all.push(("read back, records/s".into(), "log.read".into(), RATE));
    all.push(("opened after a kill, s".into(), "log.recovery".into(), "s"));
    all
}

fn bars(figures: &Figures, kinds: &[&'static Kind], begin: &str, what: &str) -> Vec<Bar> {
    let logs = kinds.iter().map(|kind| (kind.name, kind.read.is_some()));
    let bar = |(name, is_log): (&str, bool)| {
        let id = format!("{begin}.{name}.{what}");
        let colour = match (name, is_log) {
            (OURS, _) => OWN,
            (_, true) => OTHER,
            (_, false) => LIMIT,
        };
        figures.get(&id).is_some().then(|| Bar { label: name.into(), colour, id })
    };
    logs.chain([("memory", false)]).filter_map(bar).collect()
}

//! What is to be compared by eye.
//!
//! Promise: a panel a workload, a bar a store or a way that has the figure.
//! Never: shows what was not measured.

use holdfast_bench_common::colours::{LIMIT, OTHER, OWN};
use holdfast_figures::{Bar, Figures, Panel, Scale};
use holdfast_store::Cleaner;

use crate::choice::Part;
use crate::cleaning;
use crate::effort::THREADS;
use crate::flat;
use crate::peers::{self, OURS};
use crate::postgres;
use crate::rounds::{clean_id, flat_id, scanning_id, update_id};
use crate::scanning::{self, Beside};
use crate::updates::{GROUPS, Group};

/// Every panel.
pub(crate) fn all(figures: &Figures) -> Vec<Panel> {
    let panel = |(title, begin, what, scale): (String, String, &str, Scale)| Panel {
        title,
        scale,
        bars: bars(&begin, what),
    };
    let mut all: Vec<Panel> = workloads().into_iter().map(panel).collect();
    all.extend(["disk", "memory"].map(checkpoints));
    all.extend(["disk", "memory"].map(|log| cleaners(log, "tx_per_s", "transactions/s")));
    all.extend(["disk", "memory"].map(|log| cleaners(log, "p99_us", "99th percentile, us")));
    all.extend(["disk", "memory"].map(readers));
    all.push(losses());
    all.extend(GROUPS.iter().flat_map(updates));
    for panel in &mut all {
        panel.bars.retain(|bar| figures.get(&bar.id).is_some());
    }
    all.retain(|panel| !panel.bars.is_empty());
    all
}

/// All kinds of checkpoints at each interval.
fn checkpoints(log: &str) -> Panel {
    let bars = flat::INTERVALS_MS.iter().enumerate().flat_map(|(at, every)| {
        flat::KINDS.iter().enumerate().map(move |(kind, (name, _))| {
            let every = every.map_or("no checkpoints".into(), |ms| format!("every {ms} ms"));
            let colour = [OWN, OTHER, LIMIT][kind];
            let id = format!("{}.tx_per_s", flat_id(log, kind, at));
            Bar { label: format!("{name}, {every}"), colour, id }
        })
    });
    let title = format!("TPC-B by kind of checkpoint, log in {log}, transactions/s");
    Panel { title, scale: Scale::Linear, bars: bars.collect() }
}

/// Both cleaners, with little and much that waits for them.
fn cleaners(log: &str, what: &str, label: &str) -> Panel {
    let bars = cleaning::WAYS.iter().enumerate().map(|(way, (_, cleaner, mib))| {
        let (name, colour) = match cleaner {
            Cleaner::Decoupled => ("from the archive", OWN),
            Cleaner::Classical => ("from frames", LIMIT),
        };
        let id = format!("{}.{what}", clean_id(log, way));
        Bar { label: format!("{name}, every {mib} MiB"), colour, id }
    });
    let title = format!("TPC-B by where cleaned pages come from, log in {log}, {label}");
    Panel { title, scale: Scale::Linear, bars: bars.collect() }
}

/// All ways of a group, by what they are compared for.
fn updates(group: &'static Group) -> impl Iterator<Item = Panel> {
    let wanted: &[(&str, &str)] = match group.part {
        Part::Compression => &[
            ("tx_per_s", "transactions/s"),
            ("archive_bytes_per_tx", "what the archive gets of a transaction, bytes"),
        ],
        _ => &[
            ("tx_per_s", "transactions/s"),
            ("pages_written_per_tx", "pages that are written for a transaction"),
            ("behind_mib", "records that the page file lacks, MiB"),
        ],
    };
    let panels = group.loads.iter().flat_map(move |load| wanted.iter().map(move |it| (load, it)));
    panels.map(move |((load, _), (what, label))| {
        let bars = group.ways.iter().enumerate().map(|(at, way)| {
            let colour = if at == 0 { OWN } else { OTHER };
            let id = format!("{}.{what}", update_id(group, load, way));
            Bar { label: way.name.into(), colour, id }
        });
        let title = format!("{load} updates by {}, {label}", group.name);
        Panel { title, scale: Scale::Linear, bars: bars.collect() }
    })
}

/// Writers beside those who read all.
fn readers(log: &str) -> Panel {
    let bars = scanning::WAYS.iter().enumerate().map(|(way, (_, beside))| {
        let (name, colour) = match beside {
            Beside::Nobody => ("alone", OTHER),
            Beside::Spinner => ("beside a busy processor", OTHER),
            Beside::Snapshots => ("beside scans by snapshots", OWN),
            Beside::Locks => ("beside scans that lock", LIMIT),
        };
        let id = format!("{}.tx_per_s", scanning_id(log, way));
        Bar { label: name.into(), colour, id }
    });
    let title = format!("TPC-B, 2 clients beside whole scans, log in {log}, transactions/s");
    Panel { title, scale: Scale::Linear, bars: bars.collect() }
}

/// What is lost under load.
fn losses() -> Panel {
    let bars = [
        ("with a page repaired, p99", "store.repair.p99_ms"),
        ("the longest of those", "store.repair.max_ms"),
        ("first after all pages are lost", "store.media_loss.first_tx_ms"),
        ("all of them as fast as before", "store.media_loss.recovered_ms"),
    ];
    let bar = |(label, id): (&str, &str)| Bar { label: label.into(), colour: OWN, id: id.into() };
    let title = "a transaction while pages are damaged or lost, ms".into();
    Panel { title, scale: Scale::Linear, bars: bars.map(bar).into() }
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
    let title = "a queue of 1,000 rows when many have gone through, over a new one, times";
    all.push((title.into(), "store.space".into(), "queue_over_live", Scale::Logarithmic(1.0)));
    let title = "a table whose rows turned over, over a new one, times";
    all.push((title.into(), "store.space".into(), "churn_over_live", Scale::Logarithmic(1.0)));
    let title = "the head of a queue is found, us";
    all.push((title.into(), "store.scan".into(), "head_us", Scale::Logarithmic(1.0)));
    let title = "from the start of a process after a kill to its first transaction, ms";
    all.push((title.into(), "store.restart".into(), "first_tx_ms", Scale::Logarithmic(1.0)));
    all
}

fn bars(begin: &str, what: &str) -> Vec<Bar> {
    let bar = |name: &str| {
        let id = format!("{begin}.{name}.{what}");
        let colour = if name == OURS { OWN } else { OTHER };
        Bar { label: name.into(), colour, id }
    };
    let names = peers::all().map(|kind| kind.name).chain([postgres::NAME]);
    names.map(bar).collect()
}

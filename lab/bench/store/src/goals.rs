//! What is asked of this store, and what an acknowledgement of each figure means.
//!
//! Promise: a ratio is taken between runs of one repetition, and against the peer that is the best
//! by the median of its runs; a figure whose peers were not measured is left out.
//! Never: measures.

use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::ratios::{BEST, best, divided};
use holdfast_figures::{Better, Figure, median};

use crate::effort::THREADS;
use crate::flat;
use crate::peers::{Kind, OURS};
use crate::rounds::flat_id;

/// Figures of ours that stand for themselves under a shorter name, and their goals.
const SHORT: [(&str, &str, Option<f64>); 11] = [
    ("store.space.queue_over_live", "store.space.holdfast.queue_over_live", Some(3.0)),
    ("store.space.churn_over_live", "store.space.holdfast.churn_over_live", Some(3.0)),
    ("store.scan.head_us", "store.scan.holdfast.head_us", Some(50.0)),
    ("store.snapshot_scan.writer_loss", "store.snapshot_scan.disk.snapshots.loss", Some(0.1)),
    ("store.log_bytes_per_tx", "store.nondurable.holdfast.log_bytes_per_tx", Some(450.0)),
    ("store.device_bytes_per_tx", "store.durable.t2.holdfast.device_bytes_per_tx", Some(6000.0)),
    ("store.restart.first_tx_ms", "store.restart.holdfast.first_tx_ms", Some(50.0)),
    ("store.durable.tx_per_fdatasync.t2", "store.durable.t2.holdfast.tx_per_fdatasync", Some(1.4)),
    ("store.latches.services", "store.flat.memory.decoupled.latches", Some(0.0)),
    ("store.cpu_per_tx.decoupled", "store.flat.memory.decoupled.10000ms.cpu_us_per_tx", None),
    ("store.cpu_per_tx.classical", "store.flat.memory.classical.10000ms.cpu_us_per_tx", None),
];

/// Figures of ours that are measured under their own names, and their goals.
const GOALS: [(&str, f64); 3] = [
    ("store.restart.slope_ms_per_mb", 0.01),
    ("store.repair.p99_ms", 10.0),
    ("store.media_loss.first_tx_ms", 100.0),
];

/// What our durable transactions must reach of the best peer's.
const DURABLE: f64 = 1.2;

/// What a second of a processor must do of what the best peer with a log does in it.
const NONDURABLE: f64 = 2.0;

/// What the slowest interval of our checkpoints must reach of the fastest.
const FLATNESS: f64 = 0.95;

/// All figures: what is asked first, then everything that was measured.
pub(crate) fn judge(ledger: &Ledger, kinds: &[&'static Kind]) -> Vec<Figure> {
    let judge = Judge { ledger, kinds };
    let mut figures = judge.asked();
    figures.extend(judge.ratios());
    figures.extend(flat::KINDS.iter().enumerate().filter_map(|(at, it)| judge.flatness(at, it.0)));
    figures.extend(ledger.figures().into_iter().map(with_goal));
    figures.sort_by_key(|figure| figure.goal.is_none());
    figures.into_iter().map(|figure| judge.with_class(figure)).collect()
}

fn with_goal(figure: Figure) -> Figure {
    match GOALS.iter().find(|(id, _)| *id == figure.id) {
        Some((_, goal)) => figure.wanted(*goal),
        None => figure,
    }
}

struct Judge<'a> {
    ledger: &'a Ledger,
    kinds: &'a [&'static Kind],
}

impl Judge<'_> {
    /// What is not synced survives its process, except where a store says that it does not.
    fn with_class(&self, figure: Figure) -> Figure {
        let loses = |name| self.kinds.iter().any(|kind| kind.name == name && kind.kills_lose);
        let parts: Vec<&str> = figure.id.split('.').collect();
        match parts[..] {
            ["store", "durable" | "restart" | "repair" | "media_loss" | "space", ..] => {
                figure.acknowledged_by("Disk")
            }
            ["store", "snapshot_scan", "memory", ..] => figure.acknowledged_by("Memory"),
            ["store", "snapshot_scan", ..] => figure.acknowledged_by("Disk"),
            ["store", "nondurable", name, ..] if loses(name) => figure.acknowledged_by("nothing"),
            ["store", "nondurable", ..] => figure.acknowledged_by("Memory"),
            _ => figure,
        }
    }

    fn asked(&self) -> Vec<Figure> {
        let all = self.ledger.figures();
        let asked = |(id, of, goal): (&str, &str, Option<f64>)| {
            let mut figure = all.iter().find(|figure| figure.id == of)?.clone();
            (figure.id, figure.goal) = (id.into(), goal);
            Some(figure)
        };
        SHORT.into_iter().filter_map(asked).collect()
    }

    fn ratios(&self) -> Vec<Figure> {
        let peers = self.peers(|_| true);
        let durable = |threads| {
            let runs = self.over(&format!("store.durable.t{threads}"), "tx_per_s", &peers)?;
            Some(ratio(&format!("store.durable.t{threads}.over_best_peer"), runs))
        };
        let mut all: Vec<Figure> = THREADS.into_iter().filter_map(durable).collect();
        if let Some(first) = all.first().map(|figure| figure.runs.clone()) {
            all.push(ratio("store.durable.over_best_peer", first).against(DURABLE, BEST));
        }
        let logs = self.peers(|kind| kind.has_log);
        if let Some(runs) = self.over("store.nondurable", "tx_per_cpu_s", &logs) {
            let id = "store.nondurable.over_best_log_peer";
            all.push(ratio(id, runs).against(NONDURABLE, BEST));
        }
        all
    }

    /// The slowest interval over the fastest, with the log where that is less.
    fn flatness(&self, kind: usize, name: &str) -> Option<Figure> {
        let flatness = |log: &str| {
            let runs = |at| self.ledger.runs(&format!("{}.tx_per_s", flat_id(log, kind, at)));
            least_over_most(&(0..flat::INTERVALS_MS.len()).map(runs).collect::<Vec<_>>())
        };
        let worse = flatness("disk")?.min(flatness("memory")?);
        let id = format!("store.flatness.{name}");
        let figure = Figure::of(id, "ratio", Better::Higher, vec![worse]);
        Some(if name == "decoupled" { figure.wanted(FLATNESS) } else { figure })
    }

    fn peers(&self, is_one: impl Fn(&Kind) -> bool) -> Vec<&'static str> {
        let kinds = self.kinds.iter().filter(|kind| kind.name != OURS && is_one(kind));
        kinds.map(|kind| kind.name).collect()
    }

    /// Ours over the best of these.
    fn over(&self, part: &str, what: &str, peers: &[&'static str]) -> Option<Vec<f64>> {
        let id = |kind: &str| format!("{part}.{kind}.{what}");
        let best = best(self.ledger, peers, id)?;
        divided(self.ledger.runs(&id(OURS)), self.ledger.runs(&id(best)))
    }
}

/// The least of these over the most, each seen beside the mean of all of the same round: what slows
/// the machine down for a while slows all of them.
fn least_over_most(all: &[&[f64]]) -> Option<f64> {
    let rounds = all.iter().map(|runs| runs.len()).min().filter(|rounds| *rounds > 0)?;
    let mean = |round: usize| all.iter().map(|runs| runs[round]).sum::<f64>() / all.len() as f64;
    let means: Vec<f64> = (0..rounds).map(mean).collect();
    let beside = |runs: &&[f64]| {
        let shares: Vec<f64> = runs.iter().zip(&means).map(|(rate, mean)| rate / mean).collect();
        median(&shares)
    };
    let shares: Vec<f64> = all.iter().map(beside).collect();
    let (least, most) = shares
        .iter()
        .fold((f64::MAX, f64::MIN), |(least, most), it| (least.min(*it), most.max(*it)));
    Some(least / most)
}

fn ratio(id: &str, runs: Vec<f64>) -> Figure {
    Figure::of(id, "ratio", Better::Higher, runs).beside(BEST)
}

#[cfg(test)]
mod tests;

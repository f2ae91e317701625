//! What is asked of this log, and what an acknowledgement of each figure means.
//!
//! Promise: a ratio is taken between runs of one repetition, and against the peer that is the best
//! by the median of its runs; a figure whose peers were not measured is left out.
//! Never: measures.

use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::ratios::{BEST, best, divided};
use holdfast_figures::{Better, Figure};

use crate::effort::{SEALED_THREADS, SETS, THREADS};
use crate::paper;
use crate::peers::{DEVICE, Kind, OURS};

/// What a synced set must reach of the device's own rate.
const DEVICE_SHARE: f64 = 0.97;

/// What encryption with parity may take of the rate of synced sets.
const SEALED_PARITY_LOSS: f64 = 0.1;

/// Figures that stand for themselves, and their goals.
const GOALS: [(&str, f64); 9] = [
    ("log.pipelined.records_per_s", 5e6),
    ("log.memory.encoded_ns", 40.0),
    ("log.memory.typed_ns", 130.0),
    ("log.read.zerocopy.records_per_s", 15e6),
    ("log.read.json.records_per_s", 1.5e6),
    ("log.recovery.2m_s", 0.1),
    ("log.rolls.p999_over_none", 1.5),
    ("log.scan.gb_per_s", 1.0),
    ("log.scan.large_over_small_peak", 1.1),
];

/// A rate as it is found in the ledger.
const RATE: &str = "records_per_s";

/// All figures: what is asked first, then everything that was measured.
pub(crate) fn judge(ledger: &Ledger, kinds: &[&'static Kind]) -> Vec<Figure> {
    let judge = Judge { ledger, peers: peers(kinds) };
    let mut figures = judge.ratios();
    figures.extend(ledger.figures().into_iter().map(with_goal));
    figures.sort_by_key(|figure| figure.goal.is_none());
    figures.into_iter().map(with_class).collect()
}

/// The logs that are no limits and not ours.
fn peers(kinds: &[&'static Kind]) -> Vec<&'static str> {
    let is_peer = |kind: &&&Kind| kind.read.is_some() && kind.name != OURS;
    kinds.iter().filter(is_peer).map(|kind| kind.name).collect()
}

fn with_goal(figure: Figure) -> Figure {
    if let Some((_, goal)) = GOALS.iter().find(|(id, _)| *id == figure.id) {
        return figure.wanted(*goal);
    }
    paper::beside(figure)
}

/// Class Memory is memory of the process that appends: nothing outlives it.
fn with_class(figure: Figure) -> Figure {
    let class = match figure.id.split('.').nth(1) {
        Some("sync" | "pipelined" | "rolls" | "sealed_parity") => "Disk",
        Some("nosync") if figure.id.contains(".durable") => "Disk",
        Some("nosync" | "memory") => "Memory",
        Some("paper") if figure.id.contains(".nosync.") => "Memory",
        Some("paper") if figure.id.contains(".write.") => "Disk",
        _ => return figure,
    };
    figure.acknowledged_by(class)
}

struct Judge<'a> {
    ledger: &'a Ledger,
    peers: Vec<&'static str>,
}

impl Judge<'_> {
    fn ratios(&self) -> Vec<Figure> {
        let mut all = vec![
            self.of_all_sets(Better::Higher, |set| self.over(&id_of_set(set), RATE, DEVICE))
                .map(|runs| ratio("log.sync.t1.over_device", runs).against(DEVICE_SHARE, DEVICE)),
            self.of_all_sets(Better::Higher, |set| self.over_best(&id_of_set(set)))
                .map(|runs| ratio("log.sync.t1.over_best_peer", runs).against(1.0, BEST)),
            self.cpu("cpu", "cpu_us_per_record"),
            self.cpu("machine", "machine_us_per_record"),
        ];
        all.extend(THREADS.map(|threads| {
            let part = format!("log.sync.t{threads}");
            let runs = self.over_best(&part);
            runs.map(|runs| ratio(&format!("{part}.over_best_peer"), runs).against(1.5, BEST))
        }));
        all.extend([
            self.asked("log.nosync.over_best_peer", self.over_best("log.nosync"), 5.0, BEST),
            self.durable_over_unsynced(),
            self.asked("log.read.over_best_peer", self.over_best("log.read"), 1.5, BEST),
            self.over_memory("log.read.over_memory", "log.read.replay", "log.read.memory"),
            self.over_memory("log.read.json.over_memory", "log.read.json", "log.read.json.memory"),
        ]);
        let mut all: Vec<Figure> = all.into_iter().flatten().collect();
        all.extend(self.sealed_parity());
        all
    }

    /// What encryption with parity takes of each rate, after the worst of them by its median.
    fn sealed_parity(&self) -> Vec<Figure> {
        let loss = |threads: u32| {
            let part = format!("log.sealed_parity.t{threads}");
            let runs = |kind| self.runs(&part, kind, RATE);
            let kept = divided(runs("sealed_parity"), runs("plain"))?;
            let lost = kept.into_iter().map(|kept| 1.0 - kept).collect();
            Some(lower(&format!("{part}.loss"), lost))
        };
        let mut losses: Vec<Figure> = SEALED_THREADS.into_iter().filter_map(loss).collect();
        if let Some(worst) = losses.iter().max_by(|one, other| one.value.total_cmp(&other.value)) {
            let worst = lower("log.sealed_parity.loss", worst.runs.clone());
            losses.insert(0, worst.against(SEALED_PARITY_LOSS, "the same log, plain"));
        }
        losses
    }

    fn asked(&self, id: &str, runs: Option<Vec<f64>>, goal: f64, peer: &str) -> Option<Figure> {
        runs.map(|runs| ratio(id, runs).against(goal, peer))
    }

    /// Our rate of records that are on the disk over the best peer's of records that are not.
    fn durable_over_unsynced(&self) -> Option<Figure> {
        let ours = self.ledger.runs("log.pipelined.durable_per_s");
        let runs = divided(ours, self.best("log.nosync")?)?;
        Some(ratio("log.nosync.durable_over_best_peer", runs).beside(BEST))
    }

    fn over_memory(&self, id: &str, ours: &str, memory: &str) -> Option<Figure> {
        let rate = |part: &str| self.ledger.runs(&format!("{part}.{RATE}"));
        let runs = divided(rate(ours), rate(memory));
        self.asked(id, runs, 0.9, "decoding from memory")
    }

    /// What we cost over what the fastest peer costs, in the worst of the sets.
    fn cpu(&self, name: &str, what: &str) -> Option<Figure> {
        let runs = self.of_all_sets(Better::Lower, |set| {
            let part = id_of_set(set);
            divided(self.runs(&part, OURS, what), self.runs(&part, self.fastest(&part)?, what))
        })?;
        let id = format!("log.sync.t1.{name}_over_best_peer");
        Some(lower(&id, runs).against(0.5, BEST))
    }

    fn over_best(&self, part: &str) -> Option<Vec<f64>> {
        divided(self.runs(part, OURS, RATE), self.best(part)?)
    }

    fn over(&self, part: &str, what: &str, peer: &str) -> Option<Vec<f64>> {
        divided(self.runs(part, OURS, what), self.runs(part, peer, what))
    }

    /// The fastest peer's rates.
    fn best(&self, part: &str) -> Option<&[f64]> {
        Some(self.runs(part, self.fastest(part)?, RATE))
    }

    /// The fastest peer.
    fn fastest(&self, part: &str) -> Option<&'static str> {
        best(self.ledger, &self.peers, |peer| format!("{part}.{peer}.{RATE}"))
    }

    fn runs(&self, part: &str, kind: &str, what: &str) -> &[f64] {
        self.ledger.runs(&format!("{part}.{kind}.{what}"))
    }

    /// The worst of the sizes of sets, in each repetition.
    fn of_all_sets(
        &self,
        better: Better,
        ratios: impl Fn(usize) -> Option<Vec<f64>>,
    ) -> Option<Vec<f64>> {
        let all: Vec<Vec<f64>> = SETS.into_iter().map(ratios).collect::<Option<_>>()?;
        let worst = |one: f64, other: f64| match better {
            Better::Higher => one.min(other),
            Better::Lower => one.max(other),
        };
        all.into_iter().reduce(|one, other| {
            one.into_iter().zip(other).map(|(one, other)| worst(one, other)).collect()
        })
    }
}

fn id_of_set(set: usize) -> String {
    format!("log.sync.t1.set{set}")
}

fn ratio(id: &str, runs: Vec<f64>) -> Figure {
    Figure::of(id, "ratio", Better::Higher, runs)
}

fn lower(id: &str, runs: Vec<f64>) -> Figure {
    Figure::of(id, "ratio", Better::Lower, runs)
}

#[cfg(test)]
mod tests;

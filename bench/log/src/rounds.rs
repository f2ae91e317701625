//! Everything, again and again.
//!
//! Promise: within a repetition one workload goes through all logs before the next begins, and each
//! repetition begins with another log, so that what disturbs the machine disturbs all.
//! Never: goes on after a log lost something.

use holdfast_figures::Figure;

use crate::Failure;
use crate::effort::{Effort, SETS, THREADS};
use crate::flushes::Device;
use crate::ledger::Ledger;
use crate::output;
use crate::peers::{Kind, Unsynced};
use crate::place::Place;
use crate::reading::{self, Left};
use crate::record::Format;
use crate::synced::{self, Load};
use crate::unsynced;

/// What every log left, in one format.
type AllLeft = (Format, Vec<(&'static Kind, Left)>);

/// What every part of a run needs.
struct Run<'a> {
    effort: &'a Effort,
    kinds: &'a [&'static Kind],
    whole: &'a Place,
    device: Option<&'a Device>,
    ledger: Ledger,
}

/// Measures these logs.
pub(crate) fn measure(
    effort: &Effort,
    kinds: &[&'static Kind],
    whole: &Place,
    device: Option<&Device>,
) -> Result<Vec<Figure>, Failure> {
    let mut run = Run { effort, kinds, whole, device, ledger: Ledger::default() };
    let leave = |format| run.leave(format).map(|left| (format, left));
    let all_left: Vec<AllLeft> = Format::ALL.into_iter().map(leave).collect::<Result<_, _>>()?;
    for repetition in 0..effort.repetitions {
        output::progress(&format!("repetition {} of {}", repetition + 1, effort.repetitions));
        run.synced(repetition)?;
        if repetition < effort.long_repetitions {
            run.unsynced(repetition)?;
            run.reading(repetition, &all_left)?;
        }
    }
    Ok(run.ledger.figures())
}

/// A load's place in the ids.
fn load_id(load: Load) -> String {
    match load.threads {
        1 => format!("log.sync.t1.set{}", load.set),
        threads => format!("log.sync.t{threads}"),
    }
}

/// All loads of synced sets.
fn loads() -> impl Iterator<Item = Load> {
    let alone = SETS.into_iter().map(|set| Load { threads: 1, set });
    alone.chain(THREADS.into_iter().map(|threads| Load { threads, set: 1 }))
}

/// Says in which log, and doing what, something failed.
fn named<T>(what: &str, kind: &Kind, done: Result<T, Failure>) -> Result<T, Failure> {
    done.map_err(|error| format!("{}: {what}: {error}", kind.name).into())
}

impl Run<'_> {
    /// The logs in a repetition's order.
    fn turn(&self, repetition: usize) -> Vec<&'static Kind> {
        let mut kinds = self.kinds.to_vec();
        kinds.rotate_left(repetition % self.kinds.len().max(1));
        kinds
    }

    fn synced(&mut self, repetition: usize) -> Result<(), Failure> {
        for load in loads() {
            let part = load_id(load);
            output::progress(&part);
            for kind in self.turn(repetition) {
                let run = synced::measure(kind, load, self.effort, self.whole, self.device);
                let run = named(&part, kind, run)?;
                let id = |what: &str| format!("{part}.{}.{what}", kind.name);
                self.ledger.higher(id("records_per_s"), "records/s", run.records_per_s);
                self.ledger.lower(id("p50_us"), "us", run.p50_us);
                self.ledger.lower(id("p99_us"), "us", run.p99_us);
                self.ledger.lower(id("cpu_us_per_record"), "us", run.cpu_us_per_record);
                if let Some(flushes) = run.flushes_per_set {
                    self.ledger.lower(id("flushes_per_set"), "flushes", flushes);
                }
            }
        }
        Ok(())
    }

    fn unsynced(&mut self, repetition: usize) -> Result<(), Failure> {
        for (format, set) in Format::ALL.into_iter().flat_map(|it| SETS.map(|set| (it, set))) {
            let part = format!("{}set{set}", format.part());
            output::progress(&format!("log.nosync.{part}"));
            for kind in self.turn(repetition) {
                if kind.unsynced != Unsynced::Never {
                    let run =
                        unsynced::measure(kind, format, set, self.effort, self.whole, self.device);
                    self.note_unsynced(&part, kind, &named(&part, kind, run)?);
                }
            }
        }
        Ok(())
    }

    fn note_unsynced(&mut self, part: &str, kind: &Kind, run: &unsynced::Outcome) {
        let id = |how: &str, what: &str| format!("log.{how}.{part}.{}.{what}", kind.name);
        if kind.unsynced == Unsynced::Sets {
            let (rate, cpu) = (run.records_per_s, run.cpu_us_per_record);
            self.ledger.higher(id("nosync", "records_per_s"), "records/s", rate);
            self.ledger.lower(id("nosync", "cpu_us_per_record"), "us", cpu);
        }
        self.ledger.higher(id("pipelined", "records_per_s"), "records/s", run.durable_per_s);
    }

    /// Has every log that can be read filled.
    fn leave(&self, format: Format) -> Result<Vec<(&'static Kind, Left)>, Failure> {
        let readable = self.kinds.iter().filter(|kind| kind.read.is_some());
        let leave = |kind: &&'static Kind| {
            output::progress(&format!("filling {} with {}", kind.name, format.name()));
            let left = Left::by(kind, format, self.effort, self.whole);
            Ok((*kind, named("filling", kind, left)?))
        };
        readable.map(leave).collect()
    }

    fn reading(&mut self, repetition: usize, all_left: &[AllLeft]) -> Result<(), Failure> {
        for (format, left) in all_left {
            let part = format.part();
            output::progress(&format!("log.read.{}", format.name()));
            let limit = reading::memory_per_s(*format, self.effort)?;
            self.ledger.higher(format!("log.read.{part}memory.records_per_s"), "records/s", limit);
            for place in 0..left.len() {
                let (kind, left) = &left[(place + repetition) % left.len()];
                self.read_one(part, kind, left)?;
            }
        }
        Ok(())
    }

    fn read_one(&mut self, part: &str, kind: &Kind, left: &Left) -> Result<(), Failure> {
        if let Some(rate) = named("reading", kind, left.read_per_s(kind, self.whole))? {
            let id = format!("log.read.{part}{}.records_per_s", kind.name);
            self.ledger.higher(id, "records/s", rate);
        }
        let seconds = named("recovering", kind, left.recovery_s(kind, self.whole))?;
        self.ledger.lower(format!("log.recovery.{part}{}.s", kind.name), "s", seconds);
        Ok(())
    }
}

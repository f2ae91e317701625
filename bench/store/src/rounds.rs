//! Everything, again and again.
//!
//! Promise: within a repetition one workload goes through all stores before the next begins, and
//! each repetition begins with another store, so that what disturbs the machine disturbs all.
//! Never: goes on after a store lost something.

use holdfast_bench_common::Failure;
use holdfast_bench_common::flushes::Device;
use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::output;
use holdfast_bench_common::place::Place;
use holdfast_figures::Figure;

use crate::effort::{Effort, FLAT_BRANCHES, THREADS};
use crate::flat;
use crate::goals;
use crate::peers::{self, Durability, Kind, OURS};
use crate::rates::{self, Loaded, Outcome, Terrain};
use crate::restart::{Left, Work};

/// A part of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Durable,
    Nondurable,
    Flat,
    Restart,
}

impl Part {
    const ALL: [Part; 4] = [Part::Durable, Part::Nondurable, Part::Flat, Part::Restart];

    fn name(self) -> &'static str {
        match self {
            Part::Durable => "durable",
            Part::Nondurable => "nondurable",
            Part::Flat => "flat",
            Part::Restart => "restart",
        }
    }
}

/// What is measured.
pub(crate) struct Choice {
    kinds: Vec<&'static Kind>,
    parts: Vec<Part>,
}

impl Choice {
    /// The stores and parts of these names, all of either if none is named.
    pub(crate) fn of(names: Option<&str>) -> Result<Choice, Failure> {
        let (mut kinds, mut parts) = (Vec::new(), Vec::new());
        for name in names.into_iter().flat_map(|names| names.split(',')) {
            match Part::ALL.into_iter().find(|part| part.name() == name) {
                Some(part) => parts.push(part),
                None => kinds.push(peers::known(name)?),
            }
        }
        if kinds.is_empty() {
            kinds = peers::all().collect();
        }
        if parts.is_empty() {
            parts = Part::ALL.into();
        }
        Ok(Choice { kinds, parts })
    }

    fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    /// Whether a bank of so many branches is needed.
    fn needs(&self, branches: u32) -> bool {
        let is_first = branches == THREADS[0];
        self.has(Part::Durable)
            || (self.has(Part::Nondurable) && is_first)
            || (self.has(Part::Flat) && branches == FLAT_BRANCHES)
    }

    /// What every chosen store makes of something.
    fn each<T>(
        &self,
        what: &str,
        make: impl Fn(&'static Kind) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        self.kinds.iter().map(|kind| named(what, kind, make(kind))).collect()
    }
}

/// What every part of a run needs.
struct Run<'a> {
    effort: &'a Effort,
    choice: &'a Choice,
    whole: &'a Place,
    device: Option<&'a Device>,
    ledger: Ledger,
}

/// What is made once.
struct Made {
    /// Stores for each number of clients.
    loaded: Vec<(u32, Vec<Loaded>)>,
    left: Vec<Left>,
}

impl Made {
    fn bank(&self, branches: u32) -> Option<&[Loaded]> {
        self.loaded.iter().find(|(found, _)| *found == branches).map(|(_, loaded)| &loaded[..])
    }
}

/// Measures these stores.
pub(crate) fn measure(
    effort: &Effort,
    choice: &Choice,
    whole: &Place,
    device: Option<&Device>,
) -> Result<Vec<Figure>, Failure> {
    let memory = Place::in_memory("bench-store-data")?;
    let mut run = Run { effort, choice, whole, device, ledger: Ledger::default() };
    let made = run.make()?;
    if let (true, Some(loaded)) = (choice.has(Part::Flat), made.bank(FLAT_BRANCHES)) {
        run.flat(loaded, &memory)?;
    }
    for repetition in 0..effort.repetitions {
        output::progress(&format!("repetition {} of {}", repetition + 1, effort.repetitions));
        if choice.has(Part::Durable) {
            made.loaded.iter().try_for_each(|it| run.durable(repetition, it.0, &it.1))?;
        }
        if let (true, Some(loaded)) = (choice.has(Part::Nondurable), made.bank(THREADS[0])) {
            run.nondurable(repetition, loaded, &memory)?;
        }
        run.restarts(repetition, &made.left)?;
    }
    Ok(goals::judge(&run.ledger, &choice.kinds))
}

/// The ids of slices with the log there, of a kind, at an interval.
pub(crate) fn flat_id(log: &str, kind: usize, interval: usize) -> String {
    let (name, _) = flat::KINDS[kind];
    let every = flat::INTERVALS_MS[interval].map_or("none".into(), |ms| format!("{ms}ms"));
    format!("store.flat.{log}.{name}.{every}")
}

/// Says in which store, and doing what, something failed.
fn named<T>(what: &str, kind: &Kind, done: Result<T, Failure>) -> Result<T, Failure> {
    done.map_err(|error| format!("{}: {what}: {error}", kind.name).into())
}

/// These in a repetition's order.
fn turn<T>(all: &[T], repetition: usize) -> impl Iterator<Item = &T> {
    let begin = repetition % all.len().max(1);
    all[begin..].iter().chain(&all[..begin])
}

impl Run<'_> {
    fn make(&self) -> Result<Made, Failure> {
        let load = |threads: &u32| {
            output::progress(&format!("loading for {threads} clients"));
            let bank = self.effort.bank(*threads);
            let make = |kind| Loaded::new(kind, bank, self.whole);
            Ok((*threads, self.choice.each("loading", make)?))
        };
        let needed = THREADS.iter().filter(|branches| self.choice.needs(**branches));
        let loaded = needed.map(load).collect::<Result<_, Failure>>()?;
        let work = Work { accounts: self.effort.left_accounts, time: self.effort.around_kill };
        let leave = |kind: &'static Kind| {
            output::progress(&format!("leaving {}", kind.name));
            Left::by(kind, work, self.whole)
        };
        let is_left = self.choice.has(Part::Restart);
        let left = if is_left { self.choice.each("leaving", leave)? } else { Vec::new() };
        Ok(Made { loaded, left })
    }

    fn durable(
        &mut self,
        repetition: usize,
        threads: u32,
        loaded: &[Loaded],
    ) -> Result<(), Failure> {
        let part = format!("store.durable.t{threads}");
        let terrain = Terrain {
            effort: self.effort,
            whole: self.whole,
            device: self.device,
            durability: Durability::Synced,
        };
        for loaded in turn(loaded, repetition) {
            output::progress(&format!("{part}.{}", loaded.kind.name));
            let run = named(&part, loaded.kind, rates::measure(loaded, &terrain))?;
            self.note(&part, loaded.kind, &run);
            self.note_synced(&part, loaded.kind, &run);
        }
        Ok(())
    }

    fn nondurable(
        &mut self,
        repetition: usize,
        loaded: &[Loaded],
        memory: &Place,
    ) -> Result<(), Failure> {
        let part = "store.nondurable";
        let terrain = Terrain {
            effort: self.effort,
            whole: memory,
            device: None,
            durability: Durability::Kernel,
        };
        for loaded in turn(loaded, repetition) {
            output::progress(&format!("{part}.{}", loaded.kind.name));
            let run = named(part, loaded.kind, rates::measure(loaded, &terrain))?;
            self.note(part, loaded.kind, &run);
        }
        Ok(())
    }

    /// What checkpoints of either kind cost, if ours is among the stores. It repeats by itself, as
    /// long intervals need stores that stay open.
    fn flat(&mut self, loaded: &[Loaded], memory: &Place) -> Result<(), Failure> {
        let Some(ours) = loaded.iter().find(|loaded| loaded.kind.name == OURS) else {
            return Ok(());
        };
        let logs =
            [("disk", self.whole, Durability::Synced), ("memory", memory, Durability::Kernel)];
        for (log, whole, durability) in logs {
            output::progress(&format!("store.flat.{log}"));
            let run =
                named("flat", ours.kind, flat::measure(ours, self.effort, whole, durability))?;
            for slice in run.slices {
                let part = flat_id(log, slice.kind, slice.interval);
                self.ledger.higher(format!("{part}.tx_per_s"), "tx/s", slice.per_s);
                self.ledger.lower(format!("{part}.cpu_us_per_tx"), "us", slice.cpu_us);
            }
            for ((name, _), latches) in flat::KINDS.into_iter().zip(run.latches) {
                let id = format!("store.flat.{log}.{name}.latches");
                self.ledger.lower(id, "latches", latches as f64);
            }
        }
        Ok(())
    }

    fn note(&mut self, part: &str, kind: &Kind, run: &Outcome) {
        let id = |what: &str| format!("{part}.{}.{what}", kind.name);
        self.ledger.higher(id("tx_per_s"), "tx/s", run.per_s);
        self.ledger.higher(id("tx_per_cpu_s"), "tx/s", 1e6 / run.cpu_us);
        let mut lower = |what, unit, value| self.ledger.lower(id(what), unit, value);
        lower("cpu_us_per_tx", "us", run.cpu_us);
        lower("p50_us", "us", run.p50_us);
        lower("p99_us", "us", run.p99_us);
        if let Some(bytes) = run.log_bytes {
            lower("log_bytes_per_tx", "bytes", bytes);
        }
    }

    fn note_synced(&mut self, part: &str, kind: &Kind, run: &Outcome) {
        let Some(synced) = &run.synced else { return };
        let id = |what: &str| format!("{part}.{}.{what}", kind.name);
        self.ledger.higher(id("tx_per_fdatasync"), "tx", synced.over_control);
        if let Some(work) = synced.work {
            self.ledger.lower(id("flushes_per_tx"), "flushes", work.flushes);
            self.ledger.lower(id("device_bytes_per_tx"), "bytes", work.written_bytes);
        }
    }

    fn restarts(&mut self, repetition: usize, left: &[Left]) -> Result<(), Failure> {
        for left in turn(left, repetition) {
            let kind = left.kind;
            output::progress(&format!("store.restart.{}", kind.name));
            let back = named("restart", kind, left.restart(self.whole))?;
            let id = |what: &str| format!("store.restart.{}.{what}", kind.name);
            self.ledger.lower(id("first_tx_ms"), "ms", back.first_ms);
            self.ledger.lower(id("recovered_ms"), "ms", back.recovered_ms);
        }
        Ok(())
    }
}

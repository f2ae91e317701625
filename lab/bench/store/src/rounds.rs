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

use crate::choice::{Choice, Part};
use crate::cleaning;
use crate::effort::{Effort, FLAT_BRANCHES, THREADS};
use crate::flat;
use crate::goals;
use crate::media;
use crate::peers::{Durability, Kind, OURS};
use crate::postgres;
use crate::rates::{self, Loaded, Outcome, Terrain};
use crate::repair;
use crate::restart::{Left, Work, slope};
use crate::scanning;
use crate::space;
use crate::updates::{self, GROUPS, Group, Way};

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
    postgres: Option<postgres::Left>,
}

impl Made {
    /// Ours, where checkpoints are compared.
    fn ours(&self) -> Option<&Loaded> {
        self.bank(FLAT_BRANCHES)?.iter().find(|loaded| loaded.kind.name == OURS)
    }

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
    let ours = made.ours();
    if let (true, Some(ours)) = (choice.has(Part::Flat), ours) {
        run.flat(ours, &memory)?;
    }
    if let Some(ours) = ours {
        run.updates(ours)?;
    }
    if let (true, Some(ours)) = (choice.has(Part::Scanning), ours) {
        run.scanning(ours, &memory)?;
    }
    for repetition in 0..effort.repetitions {
        output::progress(&format!("repetition {} of {}", repetition + 1, effort.repetitions));
        if choice.has(Part::Durable) {
            made.loaded.iter().try_for_each(|it| run.durable(repetition, it.0, &it.1))?;
        }
        if let (true, Some(loaded)) = (choice.has(Part::Nondurable), made.bank(THREADS[0])) {
            run.nondurable(repetition, loaded, &memory)?;
        }
        if repetition < effort.restarts {
            run.restarts(repetition, &made.left)?;
            made.postgres.iter().try_for_each(|left| run.restart_postgres(left))?;
        }
        if let Some(ours) = ours {
            run.losses(ours)?;
        }
        // What it takes is the same each time, and takes its time.
        if choice.has(Part::Space) && repetition == 0 {
            run.space()?;
        }
    }
    Ok(goals::judge(&run.ledger, choice.kinds()))
}

/// The ids of slices with the log there, of a kind, at an interval.
pub(crate) fn flat_id(log: &str, kind: usize, interval: usize) -> String {
    let (name, _) = flat::KINDS[kind];
    let every = flat::INTERVALS_MS[interval].map_or("none".into(), |ms| format!("{ms}ms"));
    format!("store.flat.{log}.{name}.{every}")
}

/// The ids of slices with the log there, cleaned in a way.
pub(crate) fn clean_id(log: &str, way: usize) -> String {
    format!("store.clean.{log}.{}", cleaning::WAYS[way].0)
}

/// The ids of slices of updates under a load, in a way of a group.
pub(crate) fn update_id(group: &Group, load: &str, way: &Way) -> String {
    format!("store.{}.{load}.{}", group.name, way.name)
}

/// The ids of writers with the log there, with somebody beside them.
pub(crate) fn scanning_id(log: &str, way: usize) -> String {
    format!("store.snapshot_scan.{log}.{}", scanning::WAYS[way].0)
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
        let load = |branches: u32| {
            let needed =
                self.choice.kinds().iter().filter(|kind| self.choice.needs(branches, kind));
            let load = |kind: &&'static Kind| {
                output::progress(&format!("loading {branches} branches into {}", kind.name));
                let bank = self.effort.bank(branches);
                named("loading", kind, Loaded::new(kind, bank, self.whole))
            };
            Ok((branches, needed.map(load).collect::<Result<_, Failure>>()?))
        };
        let loaded = THREADS.into_iter().map(load).collect::<Result<_, Failure>>()?;
        let work = |mb| Work { mb, time: self.effort.around_kill };
        let most = self.effort.left_mb.last().copied();
        let leave = |kind: &'static Kind, mb: u32| {
            output::progress(&format!("leaving {mb} MB in {}", kind.name));
            named("leaving", kind, Left::by(kind, work(mb), self.whole))
        };
        let restarted = self.choice.kinds().iter().filter(|_| self.choice.has(Part::Restart));
        let amounts = |kind: &Kind| match kind.name {
            OURS => self.effort.left_mb,
            _ => &self.effort.left_mb[self.effort.left_mb.len() - 1..],
        };
        let all = restarted.flat_map(|kind| amounts(kind).iter().map(move |mb| leave(kind, *mb)));
        let left = all.collect::<Result<_, Failure>>()?;
        let postgres = most.filter(|_| self.choice.restarts_postgres()).map(|mb| {
            output::progress(&format!("leaving {mb} MB in {}", postgres::NAME));
            postgres::Left::by(work(mb), self.whole)
        });
        Ok(Made { loaded, left, postgres: postgres.transpose()? })
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

    fn restart_postgres(&mut self, left: &postgres::Left) -> Result<(), Failure> {
        let name = postgres::NAME;
        output::progress(&format!("store.restart.{name}"));
        let first_ms = left.restart_ms(self.whole)?;
        self.ledger.lower(format!("store.restart.{name}.first_tx_ms"), "ms", first_ms);
        Ok(())
    }

    /// Faults of pages, and the loss of all of them.
    fn losses(&mut self, ours: &Loaded) -> Result<(), Failure> {
        if self.choice.has(Part::Repair) {
            output::progress("store.repair");
            let run = named("repair", ours.kind, repair::measure(ours, self.effort, self.whole))?;
            self.ledger.lower("store.repair.p99_ms".into(), "ms", run.p99_ms);
            self.ledger.lower("store.repair.max_ms".into(), "ms", run.max_ms);
            self.ledger.higher("store.repair.injected".into(), "faults", run.injected as f64);
            self.ledger.higher("store.repair.met".into(), "faults", run.met as f64);
        }
        if self.choice.has(Part::Media) {
            output::progress("store.media_loss");
            let run = named("media", ours.kind, media::measure(ours, self.effort, self.whole))?;
            self.ledger.lower("store.media_loss.first_tx_ms".into(), "ms", run.first_ms);
            self.ledger.lower("store.media_loss.recovered_ms".into(), "ms", run.recovered_ms);
        }
        Ok(())
    }

    /// What checkpoints and cleaners of either kind cost. It repeats by itself, as long intervals
    /// need stores that stay open.
    fn flat(&mut self, ours: &Loaded, memory: &Place) -> Result<(), Failure> {
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
            output::progress(&format!("store.clean.{log}"));
            let run = cleaning::measure(ours, self.effort, whole, durability);
            self.note_cleaning(log, named("clean", ours.kind, run)?);
        }
        Ok(())
    }

    /// What ways to clean, to evict and to archive make of updates. It repeats by itself.
    fn updates(&mut self, ours: &Loaded) -> Result<(), Failure> {
        let chosen = GROUPS.iter().filter(|group| self.choice.has(group.part));
        for (group, load) in chosen.flat_map(|it| it.loads.iter().map(move |load| (it, *load))) {
            let part = format!("store.{}.{}", group.name, load.0);
            output::progress(&part);
            let run = updates::measure((ours, self.whole), self.effort, group.ways, load);
            let run = named(&part, ours.kind, run)?;
            self.note_updates(&run, |way| update_id(group, load.0, &group.ways[way]));
        }
        Ok(())
    }

    /// What writers lose beside somebody who reads all. It repeats by itself, as the store stays
    /// open.
    fn scanning(&mut self, ours: &Loaded, memory: &Place) -> Result<(), Failure> {
        let logs =
            [("disk", self.whole, Durability::Synced), ("memory", memory, Durability::Kernel)];
        for (log, whole, durability) in logs {
            output::progress(&format!("store.snapshot_scan.{log}"));
            let run = scanning::measure(ours, self.effort, whole, durability);
            for round in named("scanning", ours.kind, run)? {
                self.note_scanning(log, &round);
            }
        }
        Ok(())
    }

    fn note_updates(&mut self, run: &updates::Outcome, id: impl Fn(usize) -> String) {
        for slice in &run.slices {
            let id = |what| format!("{}.{what}", id(slice.way));
            self.ledger.higher(id("tx_per_s"), "tx/s", slice.per_s);
            let mut lower = |what, unit, value| self.ledger.lower(id(what), unit, value);
            lower("cpu_us_per_tx", "us", slice.cpu_us);
            lower("pages_read_per_tx", "pages", slice.brought);
            lower("behind_mib", "MiB", slice.behind_mib);
            lower("restart_mib", "MiB", slice.restart_mib);
        }
        for (way, whole) in run.wholes.iter().enumerate() {
            let id = |what| format!("{}.{what}", id(way));
            self.ledger.lower(id("pages_written_per_tx"), "pages", whole.written);
            self.ledger.lower(id("archive_bytes_per_tx"), "bytes", whole.archived_bytes);
        }
    }

    /// A round of all ways: what each came to, and its loss beside the first one.
    fn note_scanning(&mut self, log: &str, round: &[scanning::Slice]) {
        let alone = round.iter().find(|slice| slice.way == 0).map(|slice| slice.rate.per_s);
        for slice in round {
            let id = |what| format!("{}.{what}", scanning_id(log, slice.way));
            self.ledger.higher(id("tx_per_s"), "tx/s", slice.rate.per_s);
            self.ledger.lower(id("p99_us"), "us", slice.rate.p99_us);
            if let Some(alone) = alone.filter(|_| slice.way > 0) {
                self.ledger.lower(id("loss"), "ratio", 1.0 - slice.rate.per_s / alone);
            }
            if slice.scans_per_s > 0.0 {
                self.ledger.higher(id("scans_per_s"), "scans/s", slice.scans_per_s);
            }
        }
    }

    /// What cleaners cost.
    fn note_cleaning(&mut self, log: &str, run: cleaning::Outcome) {
        let id = |way: usize, what| format!("{}.{what}", clean_id(log, way));
        for (way, rate) in run.slices {
            self.ledger.higher(id(way, "tx_per_s"), "tx/s", rate.per_s);
            self.ledger.lower(id(way, "cpu_us_per_tx"), "us", rate.cpu_us);
            self.ledger.lower(id(way, "p99_us"), "us", rate.p99_us);
        }
        for (way, latches) in run.latches.into_iter().enumerate() {
            self.ledger.lower(id(way, "latches"), "latches", latches as f64);
        }
    }

    /// What rows that came and went leave in each store.
    fn space(&mut self) -> Result<(), Failure> {
        for kind in self.choice.kinds() {
            output::progress(&format!("store.space.{}", kind.name));
            let run = named("space", kind, space::measure(kind, self.effort, self.whole))?;
            let space = |what: &str| format!("store.space.{}.{what}", kind.name);
            let mut lower = |id, unit, value| self.ledger.lower(id, unit, value);
            for (name, size) in [("queue", run.queue), ("churn", run.churn)] {
                lower(space(&format!("{name}_bytes")), "bytes", size.bytes);
                lower(space(&format!("{name}_over_live")), "ratio", size.over_live);
            }
            lower(format!("store.scan.{}.head_us", kind.name), "us", run.head_us);
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
        let (mut ours, most) = (Vec::new(), self.effort.left_mb.last().copied());
        for left in turn(left, repetition) {
            let (kind, mb) = (left.kind, left.work.mb);
            output::progress(&format!("store.restart.{}.{mb}mb", kind.name));
            let back = named("restart", kind, left.restart(self.whole))?;
            let id = |what: &str| format!("store.restart.{}.{what}", kind.name);
            if Some(mb) == most {
                self.ledger.lower(id("first_tx_ms"), "ms", back.first_ms);
                self.ledger.lower(id("recovered_ms"), "ms", back.recovered_ms);
            }
            if kind.name == OURS {
                self.ledger.lower(id(&format!("{mb}mb.first_tx_ms")), "ms", back.first_ms);
                ours.push((f64::from(mb), back.first_ms));
            }
        }
        if let Some(slope) = slope(&ours) {
            self.ledger.lower("store.restart.slope_ms_per_mb".into(), "ms", slope);
        }
        Ok(())
    }
}

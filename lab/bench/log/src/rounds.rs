//! Everything, again and again.
//!
//! Promise: within a repetition one workload goes through all logs before the next begins, and each
//! repetition begins with another log, so that what disturbs the machine disturbs all.
//! Never: goes on after a log lost something.

use holdfast_bench_common::flushes::Device;
use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::output;
use holdfast_bench_common::place::Place;
use holdfast_figures::Figure;
use holdfast_wal::format::{Archive, Json, MessagePack};

use crate::Failure;
use crate::crashed;
use crate::effort::{Effort, SEALED_THREADS, SETS, THREADS};
use crate::goals;
use crate::memory;
use crate::ours::{self, Paper, Readable};
use crate::paper;
use crate::peers::{DEVICE, Kind, OURS, SEALED_PARITY, Unsynced};
use crate::reading::{InMemory, Left};
use crate::record::Format;
use crate::rolls;
use crate::synced::{self, Load, Outcome};
use crate::unsynced;

/// The bare loop of the paper's tables where nothing is synced.
const LOOP: &str = "device-buffered";

/// What every part of a run needs.
struct Run<'a> {
    effort: &'a Effort,
    kinds: &'a [&'static Kind],
    whole: &'a Place,
    device: Option<&'a Device>,
    ledger: Ledger,
}

/// What killed processes left.
struct AllLeft {
    /// The same records in each log.
    logs: Vec<(&'static Kind, Left)>,
    /// A small and a large one of ours, if that is measured.
    scanned: Vec<Left>,
}

/// Measures these logs.
pub(crate) fn measure(
    effort: &Effort,
    kinds: &[&'static Kind],
    whole: &Place,
    device: Option<&Device>,
) -> Result<Vec<Figure>, Failure> {
    let mut run = Run { effort, kinds, whole, device, ledger: Ledger::default() };
    let left = run.leave()?;
    for repetition in 0..effort.repetitions {
        output::progress(&format!("repetition {} of {}", repetition + 1, effort.repetitions));
        run.synced(repetition)?;
        run.unsynced(repetition)?;
        run.reading(repetition, &left)?;
        if run.kind(OURS).is_some() {
            run.ours(&left)?;
            run.sealed_parity()?;
        }
    }
    Ok(goals::judge(&run.ledger, kinds))
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
    let format = Format::MessagePack;
    let alone = SETS.into_iter().map(move |set| Load { threads: 1, set, format });
    alone.chain(THREADS.into_iter().map(move |threads| Load { threads, set: 1, format }))
}

impl Run<'_> {
    /// The logs in a repetition's order.
    fn turn(&self, repetition: usize) -> Vec<&'static Kind> {
        let mut kinds = self.kinds.to_vec();
        kinds.rotate_left(repetition % self.kinds.len().max(1));
        kinds
    }

    /// The log of this name, if it is measured.
    fn kind(&self, name: &str) -> Option<&'static Kind> {
        self.kinds.iter().copied().find(|kind| kind.name == name)
    }

    fn rate(&mut self, id: impl Into<String>, per_s: f64) {
        self.ledger.higher(id.into(), "records/s", per_s);
    }

    fn synced(&mut self, repetition: usize) -> Result<(), Failure> {
        for load in loads() {
            let part = load_id(load);
            output::progress(&part);
            for (kind, run) in self.synced_in_turns(&self.turn(repetition), load)? {
                self.note_synced(&part, kind.name, &run);
                self.note_paper(kind.name, load, run.records_per_s);
            }
        }
        self.synced_json()
    }

    fn note_synced(&mut self, part: &str, name: &str, run: &Outcome) {
        let id = |what: &str| format!("{part}.{name}.{what}");
        self.rate(id("records_per_s"), run.records_per_s);
        let mut lower = |what, unit, value| self.ledger.lower(id(what), unit, value);
        lower("p50_us", "us", run.p50_us);
        lower("p99_us", "us", run.p99_us);
        lower("cpu_us_per_record", "us", run.cpu_us_per_record);
        lower("machine_us_per_record", "us", run.machine_us_per_record);
        if let Some((flushes_per_set, depth)) = run.flushes {
            lower("flushes_per_set", "flushes", flushes_per_set);
            self.ledger.higher(id("flushes_at_once"), "flushes", depth);
        }
    }

    fn note_paper(&mut self, name: &str, load: Load, per_s: f64) {
        if load.threads != 1 {
            return;
        }
        if name == OURS {
            self.rate(paper::id("synced.write", load.format, load.set), per_s);
        }
        if name == DEVICE {
            // A block a set, whatever is in it.
            for format in Format::ALL {
                self.rate(paper::id("limit.synced.write", format, load.set), per_s);
            }
        }
    }

    fn synced_json(&mut self) -> Result<(), Failure> {
        let Some(kind) = self.kind(OURS) else { return Ok(()) };
        for set in SETS {
            let load = Load { threads: 1, set, format: Format::Json };
            for (kind, run) in self.synced_in_turns(&[kind], load)? {
                self.note_paper(kind.name, load, run.records_per_s);
            }
        }
        Ok(())
    }

    fn synced_in_turns(
        &self,
        kinds: &[&'static Kind],
        load: Load,
    ) -> Result<Vec<(&'static Kind, Outcome)>, Failure> {
        synced::measure(kinds, load, self.effort, self.whole, self.device)
    }

    fn unsynced(&mut self, repetition: usize) -> Result<(), Failure> {
        output::progress("log.nosync");
        for kind in self.turn(repetition) {
            if kind.unsynced != Unsynced::Never {
                let run = self.unsynced_one(kind, Format::MessagePack, 1)?;
                self.note_unsynced(kind, &run);
            }
        }
        let Some(kind) = self.kind(LOOP) else { return Ok(()) };
        for (format, set) in Format::ALL.into_iter().flat_map(|it| SETS.map(|set| (it, set))) {
            let run = self.unsynced_one(kind, format, set)?;
            self.rate(paper::id("limit.nosync.write", format, set), run.records_per_s);
        }
        Ok(())
    }

    fn unsynced_one(
        &self,
        kind: &Kind,
        format: Format,
        set: usize,
    ) -> Result<unsynced::Outcome, Failure> {
        let amount = (set, self.effort.compared);
        kind.named("no sync", unsynced::measure(kind, format, amount, self.whole, self.device))
    }

    fn note_unsynced(&mut self, kind: &Kind, run: &unsynced::Outcome) {
        let id = |what: &str| format!("log.nosync.{}.{what}", kind.name);
        if kind.unsynced != Unsynced::Batches {
            self.rate(id("records_per_s"), run.records_per_s);
            self.ledger.lower(id("cpu_us_per_record"), "us", run.cpu_us_per_record);
        }
        self.rate(id("durable_records_per_s"), run.durable_per_s);
    }

    /// Has every log that can be read filled.
    fn leave(&self) -> Result<AllLeft, Failure> {
        let fill = |kind: &'static Kind, records| {
            output::progress(&format!("filling {} with {records} records", kind.name));
            kind.named("filling", Left::by(kind, Format::MessagePack, records, self.whole))
        };
        let readable = self.kinds.iter().copied().filter(|kind| kind.read.is_some());
        let logs = readable.map(|kind| Ok((kind, fill(kind, self.effort.records)?)));
        let logs = logs.collect::<Result<_, Failure>>()?;
        let scanned = self.kind(OURS).map_or(Ok(Vec::new()), |kind| {
            self.effort.scanned.into_iter().map(|records| fill(kind, records)).collect()
        })?;
        Ok(AllLeft { logs, scanned })
    }

    fn reading(&mut self, repetition: usize, left: &AllLeft) -> Result<(), Failure> {
        output::progress("log.read");
        for place in 0..left.logs.len() {
            let (kind, left) = &left.logs[(place + repetition) % left.logs.len()];
            self.read_one(kind, left)?;
        }
        Ok(())
    }

    fn read_one(&mut self, kind: &Kind, left: &Left) -> Result<(), Failure> {
        let seconds = kind.named("recovering", left.recovery_s(kind, self.whole))?;
        self.ledger.lower(format!("log.recovery.{}.s", kind.name), "s", seconds);
        if kind.name == OURS {
            self.ledger.lower("log.recovery.2m_s".into(), "s", seconds);
        }
        if let Some(rate) = kind.named("reading", left.read_per_s(kind, self.whole))? {
            self.rate(format!("log.read.{}.records_per_s", kind.name), rate);
            let whole = f64::from(self.effort.records) / rate;
            self.ledger.lower(format!("log.recovery.{}.opened_and_read_s", kind.name), "s", whole);
        }
        Ok(())
    }

    /// What is asked of this log alone.
    fn ours(&mut self, left: &AllLeft) -> Result<(), Failure> {
        output::progress("the paper's workload");
        self.paper_in::<MessagePack>()?;
        self.paper_in::<Json>()?;
        let archived = ours::paper::<Archive>(1, None, self.effort, self.whole)?;
        self.rate("log.read.zerocopy.records_per_s", archived.read_per_s);
        output::progress("log.pipelined, log.memory, log.rolls, log.scan");
        let run = ours::pipelined(self.effort, self.whole)?;
        self.rate("log.pipelined.records_per_s", run.read_back_per_s);
        self.rate("log.pipelined.durable_per_s", run.durable_per_s);
        let encoded_ns = memory::encoded_ns(self.effort, self.whole)?;
        self.ledger.lower("log.memory.encoded_ns".into(), "ns", encoded_ns);
        let typed_ns = memory::typed_ns(self.effort, self.whole)?;
        self.ledger.lower("log.memory.typed_ns".into(), "ns", typed_ns);
        self.rolls()?;
        self.scan(&left.scanned)
    }

    fn paper_in<F: Readable>(&mut self) -> Result<(), Failure> {
        let memory = InMemory::new(F::LIKE, self.effort.records)?;
        for set in SETS {
            let run = ours::paper::<F>(set, Some(&memory), self.effort, self.whole)?;
            self.note_written(F::LIKE, set, &run);
        }
        Ok(())
    }

    fn note_written(&mut self, format: Format, set: usize, run: &Paper) {
        self.rate(paper::id("nosync.write", format, set), run.taken_per_s);
        self.rate(paper::id("deferred.write", format, set), run.durable_per_s);
        self.rate(paper::id("read", format, set), run.read_per_s);
        if let Some(limit) = run.memory_per_s {
            self.rate(paper::id("limit.read", format, set), limit);
        }
        if set == 1 {
            let part = match format {
                Format::MessagePack => "replay",
                Format::Json => "json",
            };
            self.rate(format!("log.read.{part}.records_per_s"), run.read_per_s);
            if let Some(limit) = run.memory_per_s {
                self.rate(format!("log.read.{}memory.records_per_s", format.part()), limit);
            }
        }
    }

    fn rolls(&mut self) -> Result<(), Failure> {
        let run = rolls::measure(self.effort, self.whole)?;
        self.ledger.lower("log.rolls.p999_us".into(), "us", run.rolls_us);
        self.ledger.lower("log.rolls.none_p999_us".into(), "us", run.none_us);
        let ratio = run.rolls_us / run.none_us;
        self.ledger.lower("log.rolls.p999_over_none".into(), "ratio", ratio);
        Ok(())
    }

    /// Plain logs and sealed ones with parity.
    fn sealed_parity(&mut self) -> Result<(), Failure> {
        let Some(plain) = self.kind(OURS) else { return Ok(()) };
        output::progress("log.sealed_parity");
        for threads in SEALED_THREADS {
            let load = Load { threads, set: 1, format: Format::MessagePack };
            let runs = self.synced_in_turns(&[plain, &SEALED_PARITY], load)?;
            for ((_, run), name) in runs.into_iter().zip(["plain", "sealed_parity"]) {
                let id = format!("log.sealed_parity.t{threads}.{name}.records_per_s");
                self.rate(id, run.records_per_s);
            }
        }
        Ok(())
    }

    fn scan(&mut self, logs: &[Left]) -> Result<(), Failure> {
        let [small, large] = logs else { return Ok(()) };
        let (small, large) = (crashed::open(small.path())?, crashed::open(large.path())?);
        self.ledger.higher("log.scan.gb_per_s".into(), "GB/s", large.scanned_gb_per_s());
        self.ledger.lower("log.scan.s".into(), "s", large.seconds);
        self.ledger.lower("log.scan.small_peak_kib".into(), "KiB", small.peak_kib);
        self.ledger.lower("log.scan.large_peak_kib".into(), "KiB", large.peak_kib);
        let ratio = large.peak_kib / small.peak_kib;
        self.ledger.lower("log.scan.large_over_small_peak".into(), "ratio", ratio);
        Ok(())
    }
}

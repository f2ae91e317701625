//! A system that has run for long: what a request and a recovery cost.
//!
//! Promise: whole intervals are measured, an even number of them, after the memories have settled.
//! Never: measures what is not in the model: a request that finds its page costs nothing.

use std::f64::consts::SQRT_2;

use crate::configuration::{Configuration, Load};
use crate::memory::{Dirty, Memory};
use crate::requests::Requests;
use crate::traffic::Traffic;

/// Moments of an interval at which a crash is thought of, the last one just before the checkpoint.
const MOMENTS: u64 = 16;

/// How much is simulated for one number. A trace is simulated once until it is steady, and once, or
/// as often as an even number of intervals takes, to be measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// A database of more pages is simulated with fewer, each for several.
    pub pages_max: u64,
    /// Requests for each page until it is steady,
    pub settling: u64,
    /// and those that are measured.
    pub measured: u64,
    /// How much shorter each checkpoint interval of a curve is than the one before.
    pub step: f64,
}

impl Effort {
    /// The paper's databases page by page.
    pub const FULL: Effort = Effort { pages_max: 1 << 18, settling: 8, measured: 16, step: SQRT_2 };

    /// Many configurations one after the other.
    pub const FAST: Effort = Effort { pages_max: 1 << 15, settling: 6, measured: 8, step: 2.0 };
}

/// What a system costs in its steady state, in cycles of input and output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Paging of a request, on average.
    pub paging_cycles: f64,
    /// What checkpoints add to it.
    pub checkpoint_cycles: f64,
    /// A recovery if the crash comes at the worst moment that was looked at, which is just before a
    /// checkpoint or near it.
    pub recovery_cycles: f64,
    /// A recovery on average, if the crash comes at any moment.
    pub recovery_mean_cycles: f64,
}

impl Effort {
    /// Requests until a load is steady, and those that are measured.
    fn requests(&self, load: &Load) -> (u64, u64) {
        match load {
            Load::Mix(mix) => {
                (self.settling * mix.database_pages, self.measured * mix.database_pages)
            }
            Load::Trace(trace) => (trace.accesses() as u64, trace.accesses() as u64),
        }
    }
}

impl Steady {
    /// The paper's average request time.
    #[must_use]
    pub fn request_cycles(&self) -> f64 {
        self.paging_cycles + self.checkpoint_cycles
    }
}

/// Simulates so many requests with a checkpoint after every `interval` of them, if any, from
/// memories that are in use. Returns what was moved for requests and for checkpoints.
///
/// # Panics
/// If the configuration was not checked, or has 2^32 pages or more.
#[must_use]
pub fn simulate(
    configuration: &Configuration,
    interval: Option<u64>,
    requests: u64,
) -> (Traffic, Traffic) {
    let mut simulation = Simulation::new(configuration, Memory::in_use(configuration));
    let interval = interval.unwrap_or(u64::MAX).max(1);
    let mut left = requests;
    while left > interval {
        simulation.run(interval);
        simulation.memory.checkpoint();
        left -= interval;
    }
    simulation.run(left);
    (simulation.memory.paging(), simulation.memory.checkpoints())
}

/// What a configuration costs with a checkpoint after every `interval` requests, or without any.
/// Simulates five intervals at least.
///
/// # Panics
/// If the configuration was not checked.
#[must_use]
pub fn steady(configuration: &Configuration, interval: Option<u64>, effort: Effort) -> Steady {
    let (small, factor) = configuration.scaled(effort.pages_max);
    let (settling, measured) = effort.requests(&small.load);
    let mut simulation = Simulation::new(&small, Memory::in_use(&small));
    let mut sum = Sum::default();
    match interval {
        None => {
            simulation.run(settling);
            sum.add(&mut simulation, measured, false);
        }
        Some(interval) => {
            let interval = ((interval as f64 / factor).round() as u64).max(1);
            for _ in 0..settling.div_ceil(interval).max(3) {
                simulation.run(interval);
                simulation.memory.checkpoint();
            }
            for _ in 0..measured.div_ceil(interval).next_multiple_of(2) {
                sum.add(&mut simulation, interval, true);
            }
        }
    }
    sum.cycles(configuration, factor)
}

/// Requests on memory.
pub(crate) struct Simulation {
    pub(crate) memory: Memory,
    requests: Requests,
}

impl Simulation {
    pub(crate) fn new(configuration: &Configuration, memory: Memory) -> Simulation {
        let requests = Requests::new(&configuration.load, configuration.seed);
        Simulation { memory, requests }
    }

    /// Answers so many requests.
    pub(crate) fn run(&mut self, requests: u64) {
        for _ in 0..requests {
            self.memory.request(self.requests.next());
        }
    }
}

/// What was measured.
#[derive(Default)]
struct Sum {
    requests: u64,
    paging: Vec<Traffic>,
    checkpoints: Vec<Traffic>,
    at_moments: Vec<Dirty>,
}

impl Sum {
    /// Measures one interval.
    fn add(&mut self, simulation: &mut Simulation, requests: u64, is_checkpointed: bool) {
        let before = (simulation.memory.paging(), simulation.memory.checkpoints());
        for moment in 1..=MOMENTS {
            simulation.run(requests * moment / MOMENTS - requests * (moment - 1) / MOMENTS);
            self.at_moments.push(simulation.memory.dirty());
        }
        if is_checkpointed {
            simulation.memory.checkpoint();
        }
        self.requests += requests;
        self.paging.push(simulation.memory.paging() - before.0);
        self.checkpoints.push(simulation.memory.checkpoints() - before.1);
    }

    fn cycles(&self, configuration: &Configuration, factor: f64) -> Steady {
        let machine = &configuration.machine;
        let per_request = |all: &[Traffic]| {
            all.iter().map(|traffic| machine.cycles(*traffic)).sum::<f64>() / self.requests as f64
        };
        let recovery = |dirty: &Dirty| {
            let reads = Traffic {
                disk_reads: dirty.on_disk,
                durable_reads: dirty.durable,
                ..Traffic::default()
            };
            machine.cycles(reads) * factor
        };
        let recoveries = || self.at_moments.iter().map(recovery);
        Steady {
            paging_cycles: per_request(&self.paging),
            checkpoint_cycles: per_request(&self.checkpoints),
            recovery_cycles: recoveries().fold(0.0, f64::max),
            recovery_mean_cycles: recoveries().sum::<f64>() / self.at_moments.len() as f64,
        }
    }
}

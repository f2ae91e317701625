//! The paper's numbers side by side with ours.
//!
//! Promise: every number of section 6.2 that a simulation can give is here, as it is printed; what
//! differs by more than a twentieth has an explanation.
//! Never: changes the model for the sake of a number.

use super::Named;
use crate::configuration::Configuration;
use crate::curve::{Curve, Point};
use crate::steady::{Effort, Steady};
use crate::warm_up::{Filled, WarmUp, warm_up};

/// Warm-ups of a configuration, each with a seed of its own; their medians are compared.
pub const SEEDS: u64 = 5;

/// The part of the paper's number from which on a difference has to be explained.
pub const FAR: f64 = 0.05;

/// What was simulated of one of the paper's configurations.
#[derive(Clone, Debug)]
pub struct Results {
    /// Which it is.
    pub named: Named,
    /// All intervals.
    pub curve: Curve,
    /// The time after a crash, by seed.
    pub warm_ups: Vec<WarmUp>,
}

/// One number of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Name in ids.
    pub id: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What the paper prints.
    pub paper: f64,
    /// What we get.
    pub ours: f64,
    /// Why they differ; empty where they hardly do.
    pub because: &'static str,
}

impl Compared {
    /// By which part of the paper's number ours is above it; below 0 if it is less.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.ours / self.paper - 1.0
    }

    /// Whether the difference has to be explained.
    #[must_use]
    pub fn is_far(&self) -> bool {
        self.difference().abs() > FAR
    }
}

/// Where a number comes from.
struct Row {
    id: &'static str,
    what: &'static str,
    unit: &'static str,
    paper: f64,
    ours: fn(&All) -> f64,
    because: &'static str,
}

/// The results of the four configurations.
struct All<'a> {
    small: &'a Results,
    small_durable: &'a Results,
    large: &'a Results,
    large_durable: &'a Results,
}

/// All numbers, in the order in which the paper has them, but for those after a crash, which come
/// first.
const ROWS: [Row; 15] = [
    Row {
        id: "small.full.megarequests",
        what: "small: all pages in memory after",
        unit: "megarequests",
        paper: 2.8,
        ours: |all| all.small.full(|it| it.requests) / 1e6,
        because: CHANCE,
    },
    Row {
        id: "small.full.gigacycles",
        what: "small: paging until then",
        unit: "gigacycles",
        paper: 2.10,
        ours: |all| all.small.full(|it| it.cycles) / 1e9,
        because: "",
    },
    Row {
        id: "small_durable.full.megarequests",
        what: "small-durable: all pages in memory after",
        unit: "megarequests",
        paper: 2.8,
        ours: |all| all.small_durable.full(|it| it.requests) / 1e6,
        because: CHANCE,
    },
    Row {
        id: "small_durable.full.megacycles",
        what: "small-durable: paging until then",
        unit: "megacycles",
        paper: 262.0,
        ours: |all| all.small_durable.full(|it| it.cycles) / 1e6,
        because: "",
    },
    Row {
        id: "large.as_steady.kilorequests",
        what: "large: as good as the steady state after",
        unit: "kilorequests",
        paper: 150.0,
        ours: |all| all.large.as_steady(|it| it.requests) / 1e3,
        because: "",
    },
    Row {
        id: "large.as_steady.gigacycles",
        what: "large: paging until then",
        unit: "gigacycles",
        paper: 2.4,
        ours: |all| all.large.as_steady(|it| it.cycles) / 1e9,
        because: "",
    },
    Row {
        id: "large.as_steady.percent",
        what: "large: memory is full then to",
        unit: "percent",
        paper: 58.0,
        ours: |all| all.large.as_steady(|it| it.part) * 100.0,
        because: "",
    },
    Row {
        id: "large.full.kilorequests",
        what: "large: memory full after",
        unit: "kilorequests",
        paper: 500.0,
        ours: |all| all.large.full(|it| it.requests) / 1e3,
        because: EVERY_25_000,
    },
    Row {
        id: "large.full.gigacycles",
        what: "large: paging until then",
        unit: "gigacycles",
        paper: 4.3,
        ours: |all| all.large.full(|it| it.cycles) / 1e9,
        because: "",
    },
    Row {
        id: "large_durable.full.kilorequests",
        what: "large-durable: memory full after",
        unit: "kilorequests",
        paper: 175.0,
        ours: |all| all.large_durable.full(|it| it.requests) / 1e3,
        because: EVERY_25_000,
    },
    Row {
        id: "large_durable.full.gigacycles",
        what: "large-durable: paging until then",
        unit: "gigacycles",
        paper: 1.13,
        ours: |all| all.large_durable.full(|it| it.cycles) / 1e9,
        because: "",
    },
    Row {
        id: "large.lowest.cycles",
        what: "large: lowest request time",
        unit: "cycles",
        paper: 8150.0,
        ours: |all| all.large.curve.without_checkpoints.request_cycles(),
        because: "",
    },
    Row {
        id: "large_durable.lowest.cycles",
        what: "large-durable: lowest request time",
        unit: "cycles",
        paper: 11_100.0,
        ours: |all| all.large_durable.curve.without_checkpoints.request_cycles(),
        because: NO_COPIES,
    },
    Row {
        id: "crossover.megacycles",
        what: "large is better than large-durable from recoveries of",
        unit: "megacycles",
        paper: 1650.0,
        ours: |all| crossover(&all.large.curve, &all.large_durable.curve),
        because: MOMENT,
    },
    Row {
        id: "crossover_of_means.megacycles",
        what: "the same, if the crash may come at any moment",
        unit: "megacycles",
        paper: 1650.0,
        ours: |all| crossover(&of_means(&all.large.curve), &of_means(&all.large_durable.curve)),
        because: MOMENT,
    },
];

const CHANCE: &str = "the page that is asked for last decides; of 5 seeds the median is taken, and \
    single ones differ by a tenth";

const EVERY_25_000: &str = "160,000 requests of this mix ask for as many different pages as fit, \
    in whatever order they come; the paper's counts are multiples of 25,000, as if it had looked \
    every 25,000 requests";

const NO_COPIES: &str = "pages from and to disk alone come to the paper's number here; hot \
    pages that come from durable memory, and go back to it changed, are the rest";

const MOMENT: &str = "the paper does not say when in an interval the crash comes: at the worst \
    moment, or at any; its number lies between";

/// Simulates one of the paper's configurations. Calls `progress` before each part with how many are
/// done, and how many there are.
#[must_use]
pub fn run(named: Named, effort: Effort, mut progress: impl FnMut(usize, usize)) -> Results {
    let configuration = named.configuration();
    let seeds = SEEDS as usize;
    let curve =
        Curve::of(&configuration, effort, |done, intervals| progress(done, intervals + seeds));
    let done = curve.points.len() + 1;
    let mut warm_ups = Vec::new();
    for seed in 1..=SEEDS {
        progress(done + warm_ups.len(), done + seeds);
        let configuration = Configuration { seed, ..configuration.clone() };
        warm_ups.push(warm_up(&configuration, &curve.without_checkpoints, effort));
    }
    Results { named, curve, warm_ups }
}

/// Every number of section 6.2, beside ours.
///
/// # Panics
/// If the results of one of the four configurations are missing.
#[must_use]
pub fn compare(results: &[Results]) -> Vec<Compared> {
    let of = |named| {
        results.iter().find(|it| it.named == named).expect("all four configurations are there")
    };
    let all = All {
        small: of(Named::Small),
        small_durable: of(Named::SmallDurable),
        large: of(Named::Large),
        large_durable: of(Named::LargeDurable),
    };
    let compared = |row: &Row| {
        let Row { id, what, unit, paper, ours, because } = *row;
        Compared { id, what, unit, paper, ours: ours(&all), because }
    };
    ROWS.iter().map(compared).collect()
}

impl Results {
    /// A median of all seeds, of the moment when memory was full.
    fn full(&self, what: impl Fn(&Filled) -> f64) -> f64 {
        median(self.warm_ups.iter().filter_map(|it| it.full.as_ref().map(&what)).collect())
    }

    /// Likewise, of the first requests that were as good as in the steady state.
    fn as_steady(&self, what: impl Fn(&Filled) -> f64) -> f64 {
        median(self.warm_ups.iter().filter_map(|it| it.as_steady.as_ref().map(&what)).collect())
    }
}

/// The middle value of an odd number of them; NaN of none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// In megacycles; NaN if there is none.
fn crossover(large: &Curve, large_durable: &Curve) -> f64 {
    large.crossover(large_durable).unwrap_or(f64::NAN) / 1e6
}

/// The curve of recoveries from crashes at any moment.
pub(crate) fn of_means(curve: &Curve) -> Curve {
    let mean = |point: &Point| {
        let recovery_cycles = point.steady.recovery_mean_cycles;
        Point { steady: Steady { recovery_cycles, ..point.steady }, ..*point }
    };
    Curve {
        without_checkpoints: curve.without_checkpoints,
        points: curve.points.iter().map(mean).collect(),
    }
}

//! Request time against recovery time: a configuration with many checkpoint intervals.
//!
//! Promise: what lies between two intervals that were simulated is taken to lie on a straight line.
//! Never: says more than was simulated: recoveries shorter than those at the shortest interval are
//! not there.

use std::iter::successors;

use crate::configuration::Configuration;
use crate::steady::{Effort, Steady, steady};

/// The longest interval and the shortest, in requests for each page.
const LONGEST: f64 = 8.0;
const SHORTEST: f64 = 1.0 / 192.0;

/// Limits that are tried for a crossover.
const LIMITS: i32 = 4096;

/// One interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Requests between two checkpoints.
    pub interval: u64,
    /// What it comes to.
    pub steady: Steady,
}

/// What one configuration can do.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Without checkpoints.
    pub without_checkpoints: Steady,
    /// From few checkpoints to very many.
    pub points: Vec<Point>,
}

/// The least request time within a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// Requests between two checkpoints.
    pub interval: f64,
    /// The average request time.
    pub request_cycles: f64,
    /// The longest recovery.
    pub recovery_cycles: f64,
}

impl Curve {
    /// Simulates a configuration with all intervals. Calls `progress` before each with how many are
    /// done, and how many there are.
    ///
    /// # Panics
    /// If the configuration was not checked.
    #[must_use]
    pub fn of(
        configuration: &Configuration,
        effort: Effort,
        mut progress: impl FnMut(usize, usize),
    ) -> Curve {
        let intervals = intervals(configuration, effort);
        progress(0, intervals.len() + 1);
        let without_checkpoints = steady(configuration, None, effort);
        let mut points = Vec::new();
        for interval in &intervals {
            progress(points.len() + 1, intervals.len() + 1);
            let steady = steady(configuration, Some(*interval), effort);
            points.push(Point { interval: *interval, steady });
        }
        Curve { without_checkpoints, points }
    }

    /// The least request time with recoveries of at most so many cycles; `None` if every interval
    /// that was simulated has longer ones. There are always checkpoints: without any, a log would
    /// have to be kept for ever.
    #[must_use]
    pub fn within(&self, recovery_cycles: f64) -> Option<Best> {
        let ends = self.points.iter().map(Best::at);
        let between = self
            .points
            .windows(2)
            .filter_map(|two| Best::at(&two[0]).on_the_way(&Best::at(&two[1]), recovery_cycles));
        ends.chain(between)
            .filter(|best| best.recovery_cycles <= recovery_cycles)
            .min_by(|one, other| one.request_cycles.total_cmp(&other.request_cycles))
    }

    /// The recovery limit from which on this configuration is at least as good as another: the
    /// paper's crossover. `None` if it never is.
    #[must_use]
    pub fn crossover(&self, other: &Curve) -> Option<f64> {
        let all = || self.points.iter().chain(&other.points).map(|it| it.steady.recovery_cycles);
        let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
        let limit = |step| least * (most / least).powf(f64::from(step) / f64::from(LIMITS));
        (0..=LIMITS).map(limit).find(|limit| self.is_as_good(other, *limit))
    }

    fn is_as_good(&self, other: &Curve, recovery_cycles: f64) -> bool {
        match (self.within(recovery_cycles), other.within(recovery_cycles)) {
            (Some(ours), Some(theirs)) => ours.request_cycles <= theirs.request_cycles,
            (ours, _) => ours.is_some(),
        }
    }
}

/// The intervals of a curve, the longest first.
fn intervals(configuration: &Configuration, effort: Effort) -> Vec<u64> {
    let pages = configuration.load.database_pages() as f64;
    let lengths = successors(Some(LONGEST), |length| Some(length / effort.step));
    let lengths = lengths.take_while(|length| *length > SHORTEST);
    let mut all: Vec<u64> =
        lengths.map(|length| (pages * length).round().max(1.0) as u64).collect();
    all.dedup();
    all
}

impl Best {
    fn at(point: &Point) -> Best {
        Best {
            interval: point.interval as f64,
            request_cycles: point.steady.request_cycles(),
            recovery_cycles: point.steady.recovery_cycles,
        }
    }

    /// Where the line to another one meets a limit, if it does.
    fn on_the_way(&self, other: &Best, recovery_cycles: f64) -> Option<Best> {
        let part = (recovery_cycles - self.recovery_cycles)
            / (other.recovery_cycles - self.recovery_cycles);
        let between = |one: f64, other: f64| one + part * (other - one);
        (part > 0.0 && part < 1.0).then(|| Best {
            interval: between(self.interval, other.interval),
            request_cycles: between(self.request_cycles, other.request_cycles),
            recovery_cycles,
        })
    }
}

#[cfg(test)]
mod tests;

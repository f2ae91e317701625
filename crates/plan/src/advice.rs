//! Advice: with this memory, this database and this recovery limit, how much to make durable.
//!
//! Promise: every size is judged as the paper judges two of them: by the least request time of all
//! checkpoint intervals that keep the limit. Of sizes that come to the same, the smallest is
//! advised.
//! Never: weighs anything else, such as what warm-up or a log in durable memory is worth.

use std::fmt;

use crate::configuration::Configuration;
use crate::curve::{Best, Curve};
use crate::steady::Effort;

/// Sizes that are tried first: so many parts of memory.
const PARTS: u64 = 16;

/// How often the step between sizes is halved then.
const HALVINGS: u32 = 3;

/// Request times that differ by less than this part come to the same: it is what two seeds differ
/// by.
const SAME: f64 = 0.005;

/// One size of durable memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Pages of durable memory.
    pub durable_pages: u64,
    /// The best it can do; `None` if it cannot keep the limit.
    pub best: Option<Best>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// Pages to reserve as durable memory.
    pub durable_pages: u64,
    /// What it comes to.
    pub best: Best,
    /// All sizes that were tried, the smallest, which is none, first.
    pub tried: Vec<Tried>,
}

/// No size keeps the limit: allow longer recoveries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoAdvice {
    /// The shortest recovery of all that were simulated, in cycles.
    pub shortest_cycles: f64,
}

/// Finds the size of durable memory with which requests take least, if a recovery may take so many
/// cycles. What the configuration has for that size does not matter. Calls `progress` with how many
/// sizes are done, and how many there will be.
///
/// # Errors
/// If no size keeps the limit.
///
/// # Panics
/// If the configuration was not checked.
pub fn advise(
    configuration: &Configuration,
    recovery_cycles: f64,
    mut progress: impl FnMut(usize, usize),
) -> Result<Advice, NoAdvice> {
    let mut search =
        Search { configuration, recovery_cycles, tried: Vec::new(), shortest: f64::MAX };
    let first = first_sizes(configuration);
    let all = first.len() + 2 * HALVINGS as usize;
    for size in first {
        search.try_size(size);
        progress(search.tried.len(), all);
    }
    let mut step = configuration.memory_pages / PARTS;
    for _ in 0..HALVINGS {
        let Some((best, _)) = search.best() else { break };
        step /= 2;
        search.try_size(best.saturating_sub(step));
        search.try_size((best + step).min(configuration.memory_pages - 1));
        progress(search.tried.len().min(all), all);
    }
    search.advice()
}

/// Parts of memory; as much as leaves room for all pages, and as much as all pages take.
fn first_sizes(configuration: &Configuration) -> Vec<u64> {
    let (memory, database) = (configuration.memory_pages, configuration.load.database_pages());
    let mut sizes: Vec<u64> = (0..PARTS).map(|part| memory * part / PARTS).collect();
    sizes.extend(memory.checked_sub(database).filter(|rest| *rest < memory));
    sizes.extend(Some(database).filter(|size| *size < memory));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

struct Search<'a> {
    configuration: &'a Configuration,
    recovery_cycles: f64,
    tried: Vec<Tried>,
    /// The shortest recovery so far.
    shortest: f64,
}

impl Search<'_> {
    fn try_size(&mut self, durable_pages: u64) {
        if self.tried.iter().any(|tried| tried.durable_pages == durable_pages) {
            return;
        }
        let configuration = Configuration { durable_pages, ..self.configuration.clone() };
        let curve = Curve::of(&configuration, Effort::FAST, |_, _| {});
        let recoveries = curve.points.iter().map(|point| point.steady.recovery_cycles);
        self.shortest = recoveries.fold(self.shortest, f64::min);
        self.tried.push(Tried { durable_pages, best: curve.within(self.recovery_cycles) });
    }

    /// The smallest size of those that come to the same as the best.
    fn best(&self) -> Option<(u64, Best)> {
        let kept =
            || self.tried.iter().filter_map(|it| it.best.map(|best| (it.durable_pages, best)));
        let least = kept().map(|(_, best)| best.request_cycles).fold(f64::MAX, f64::min);
        kept()
            .filter(|(_, best)| best.request_cycles <= least * (1.0 + SAME))
            .min_by_key(|(durable_pages, _)| *durable_pages)
    }

    fn advice(mut self) -> Result<Advice, NoAdvice> {
        let (durable_pages, best) =
            self.best().ok_or(NoAdvice { shortest_cycles: self.shortest })?;
        self.tried.sort_unstable_by_key(|tried| tried.durable_pages);
        Ok(Advice { durable_pages, best, tried: self.tried })
    }
}

impl fmt::Display for NoAdvice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cycles = self.shortest_cycles;
        write!(out, "no size keeps the limit; the shortest recovery has {cycles:.0} cycles")
    }
}

impl std::error::Error for NoAdvice {}

#[cfg(test)]
mod tests;

//! The time after a crash: how long until conventional memory is full, and until requests cost no
//! more than they did.
//!
//! Promise: begins with nothing in conventional memory and the hottest pages in durable memory; no
//! checkpoint comes between.
//! Never: counts the recovery itself.

use crate::configuration::Configuration;
use crate::memory::Memory;
use crate::steady::{Effort, Simulation, Steady};

/// Parts of the database's number of pages that requests are averaged over.
const WINDOWS: u64 = 25;

/// Requests for each page after which it is given up: a page that is hardly ever asked for may
/// keep memory from being full.
const REQUESTS_MAX: u64 = 400;

/// A moment after a crash.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filled {
    /// Requests up to it.
    pub requests: f64,
    /// Cycles of paging up to it.
    pub cycles: f64,
    /// The part of conventional memory that has pages, or of the pages that are in it, if it has
    /// room for more than all.
    pub part: f64,
}

/// What the time after a crash comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUp {
    /// The first requests that cost no more than in the steady state; `None` if there were none
    /// before it was given up.
    pub as_steady: Option<Filled>,
    /// When conventional memory was full, or had all pages; `None` likewise.
    pub full: Option<Filled>,
}

/// Simulates the time after a crash of what has this steady state without checkpoints.
///
/// # Panics
/// If the configuration was not checked.
#[must_use]
pub fn warm_up(configuration: &Configuration, steady: &Steady, effort: Effort) -> WarmUp {
    let (small, factor) = configuration.scaled(effort.pages_max);
    let pages = small.load.database_pages();
    let memory = Memory::after_crash(&small);
    let mut after = After { simulation: Simulation::new(&small, memory), small, factor, done: 0 };
    let mut warm_up = WarmUp { as_steady: None, full: None };
    while warm_up.as_steady.is_none() || warm_up.full.is_none() {
        let began = after.moment();
        after.run(pages.div_ceil(WINDOWS), &mut warm_up.full);
        let ended = after.moment();
        let cycles = (ended.cycles - began.cycles) / (ended.requests - began.requests);
        if warm_up.as_steady.is_none() && cycles <= steady.paging_cycles {
            warm_up.as_steady = Some(began);
        }
        if after.done > REQUESTS_MAX * pages {
            break;
        }
    }
    warm_up
}

struct After {
    simulation: Simulation,
    small: Configuration,
    factor: f64,
    done: u64,
}

impl After {
    /// Answers requests, and notes when memory was full.
    fn run(&mut self, requests: u64, full: &mut Option<Filled>) {
        for _ in 0..requests {
            self.simulation.run(1);
            self.done += 1;
            if full.is_none() && self.simulation.memory.is_full() {
                *full = Some(self.moment());
            }
        }
    }

    fn moment(&self) -> Filled {
        let memory = &self.simulation.memory;
        let room = self.small.conventional_pages().min(self.small.load.database_pages());
        Filled {
            requests: self.done as f64 * self.factor,
            cycles: self.small.machine.cycles(memory.paging()) * self.factor,
            part: f64::from(memory.resident_pages()) / room as f64,
        }
    }
}

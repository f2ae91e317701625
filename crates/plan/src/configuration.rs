//! What is simulated.
//!
//! Promise: what passes [`Configuration::check`] can be simulated.
//! Never: has a default for what only the user knows.

use std::fmt;
use std::sync::Arc;

use crate::machine::Machine;
use crate::trace::Trace;

/// Pages of memory or of a database, at most, so that every count is a number.
const PAGES_MAX: u64 = 1 << 48;

/// What rates, and the size of a page, have to lie between, so that every cost is a number.
const RATE_MIN: f64 = 1e-3;
const RATE_MAX: f64 = 1e15;

/// Requests for each page in the longest interval.
const INTERVAL_PER_PAGE_MAX: u64 = 256;

/// A database on a machine with memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// What a move costs.
    pub machine: Machine,
    /// Pages that fit into memory, conventional and durable together.
    pub memory_pages: u64,
    /// Of these, pages that fit into durable memory.
    pub durable_pages: u64,
    /// Which pages are asked for.
    pub load: Load,
    /// Where pages go that have to leave conventional memory.
    pub cold_pages: ColdPages,
    /// What becomes of those that stable storage has already.
    pub clean_pages: CleanPages,
    /// Where random numbers begin.
    pub seed: u64,
}

/// Which pages are asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Drawn at random.
    Mix(Mix),
    /// As they were once.
    Trace(Arc<Trace>),
}

/// Requests drawn at random: some pages are hot, and all hot ones, and all cold ones, are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Pages of the database.
    pub database_pages: u64,
    /// The part of the pages that is hot.
    pub hot_pages: f64,
    /// The part of the requests that is for hot pages.
    pub hot_requests: f64,
    /// The part of the requests that changes its page.
    pub writes: f64,
}

/// Where a page goes that has to leave conventional memory and has no copy in durable memory. One
/// that has a copy there is written over its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColdPages {
    /// To disk: durable memory is for checkpoints. The paper's first strategy, and that of its
    /// figures.
    ToDisk,
    /// To durable memory while that has room. The paper's second strategy.
    ToDurable,
}

/// What becomes of a page that has to leave conventional memory unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanPages {
    /// It is written like any other, unless durable memory has it. The paper's figures hold for
    /// this only.
    Written,
    /// It is forgotten.
    Dropped,
}

/// Why a configuration cannot be simulated: change what it names.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigurationFault {
    /// Durable memory takes all of memory, or there is none.
    NoConventionalMemory,
    /// The database has so many pages, and has to have two at least.
    TooFewPages(u64),
    /// So many pages are more than memory or a database can have.
    TooManyPages(u64),
    /// This part lies not between 0 and 1; parts of pages and of requests may not be 0 or 1 either.
    Part(&'static str, f64),
    /// This rate or size is not one of a machine.
    Rate(&'static str, f64),
    /// Durable memory has a rate below that of the disk.
    SlowDurable,
    /// So many requests between two checkpoints cannot be simulated, only so many.
    LongInterval(u64, u64),
}

impl Mix {
    /// The requests of section 6.1, for a database of any size: a fifth of the pages has four
    /// fifths of the requests, and a fifth of the requests writes.
    #[must_use]
    pub fn paper(database_pages: u64) -> Mix {
        Mix { database_pages, hot_pages: 0.2, hot_requests: 0.8, writes: 0.2 }
    }

    /// How many pages are hot: one at least, and not all.
    #[must_use]
    pub fn hot_pages(&self) -> u64 {
        let hot = (self.database_pages as f64 * self.hot_pages).round() as u64;
        hot.clamp(1, self.database_pages - 1)
    }
}

impl Load {
    /// Pages that may be asked for.
    #[must_use]
    pub fn database_pages(&self) -> u64 {
        match self {
            Load::Mix(mix) => mix.database_pages,
            Load::Trace(trace) => u64::from(trace.pages()),
        }
    }

    /// All pages, the most asked for first.
    pub(crate) fn hottest_first(&self) -> Vec<u32> {
        match self {
            Load::Mix(mix) => (0..mix.database_pages as u32).collect(),
            Load::Trace(trace) => trace.hottest_first(),
        }
    }
}

impl Configuration {
    /// Pages that fit into conventional memory.
    #[must_use]
    pub fn conventional_pages(&self) -> u64 {
        self.memory_pages - self.durable_pages
    }

    /// Whether it can be simulated.
    ///
    /// # Errors
    /// At the first thing that makes no sense.
    pub fn check(&self) -> Result<(), ConfigurationFault> {
        if self.durable_pages >= self.memory_pages {
            return Err(ConfigurationFault::NoConventionalMemory);
        }
        let pages = self.memory_pages.max(self.load.database_pages());
        if pages > PAGES_MAX {
            return Err(ConfigurationFault::TooManyPages(pages));
        }
        let Machine { clock_hz, page_bytes, disk_bytes_per_s, durable_bytes_per_s } = self.machine;
        rate("clock in hertz", clock_hz)?;
        rate("page in bytes", page_bytes as f64)?;
        rate("disk in bytes a second", disk_bytes_per_s)?;
        rate("durable memory in bytes a second", durable_bytes_per_s)?;
        if durable_bytes_per_s < disk_bytes_per_s {
            return Err(ConfigurationFault::SlowDurable);
        }
        match &self.load {
            Load::Mix(mix) => mix.check(),
            Load::Trace(_) => Ok(()),
        }
    }

    /// Whether so many requests between two checkpoints can be simulated. The longest intervals are
    /// those of a trace that is simulated once, and those in which every page is asked for hundreds
    /// of times: checkpoints as rare as that are as good as none.
    ///
    /// # Errors
    /// If they are too many.
    pub fn check_interval(&self, requests: u64) -> Result<(), ConfigurationFault> {
        let for_pages = self.load.database_pages().saturating_mul(INTERVAL_PER_PAGE_MAX);
        let most = match &self.load {
            Load::Mix(_) => for_pages,
            Load::Trace(trace) => for_pages.max(trace.accesses() as u64),
        };
        match requests <= most {
            true => Ok(()),
            false => Err(ConfigurationFault::LongInterval(requests, most)),
        }
    }

    /// A smaller one that has the same costs a request: at most so many pages, each for so many of
    /// this one's. A trace cannot be made smaller.
    pub(crate) fn scaled(&self, pages_max: u64) -> (Configuration, f64) {
        let mut small = self.clone();
        let Load::Mix(mix) = &mut small.load else { return (small, 1.0) };
        let factor = (mix.database_pages as f64 / pages_max as f64).max(1.0);
        let scaled = |pages: u64| (pages as f64 / factor).round() as u64;
        mix.database_pages = scaled(mix.database_pages).max(2);
        // More memory than all pages twice has nothing to hold.
        small.durable_pages = scaled(self.durable_pages).min(mix.database_pages);
        let conventional = scaled(self.conventional_pages()).clamp(1, mix.database_pages);
        small.memory_pages = small.durable_pages + conventional;
        (small, factor)
    }
}

impl Mix {
    fn check(&self) -> Result<(), ConfigurationFault> {
        if self.database_pages < 2 {
            return Err(ConfigurationFault::TooFewPages(self.database_pages));
        }
        for (name, part) in [("hot pages", self.hot_pages), ("hot requests", self.hot_requests)] {
            if !(part > 0.0 && part < 1.0) {
                return Err(ConfigurationFault::Part(name, part));
            }
        }
        match (0.0..=1.0).contains(&self.writes) {
            true => Ok(()),
            false => Err(ConfigurationFault::Part("writes", self.writes)),
        }
    }
}

fn rate(name: &'static str, rate: f64) -> Result<(), ConfigurationFault> {
    match (RATE_MIN..=RATE_MAX).contains(&rate) {
        true => Ok(()),
        false => Err(ConfigurationFault::Rate(name, rate)),
    }
}

impl fmt::Display for ConfigurationFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigurationFault::NoConventionalMemory => {
                write!(out, "durable memory leaves no conventional memory for pages")
            }
            ConfigurationFault::TooFewPages(pages) => {
                write!(out, "a database of {pages} pages cannot have hot and cold ones")
            }
            ConfigurationFault::TooManyPages(pages) => {
                write!(out, "{pages} pages are more than {PAGES_MAX}")
            }
            ConfigurationFault::Part(name, part) => {
                write!(out, "the part of {name}, {part}, does not lie between 0 and 1")
            }
            ConfigurationFault::Rate(name, rate) => {
                write!(out, "the {name}, {rate}, does not lie between {RATE_MIN} and {RATE_MAX:e}")
            }
            ConfigurationFault::SlowDurable => {
                write!(out, "durable memory is slower than the disk")
            }
            ConfigurationFault::LongInterval(requests, most) => {
                write!(out, "{requests} requests between checkpoints are more than {most}")
            }
        }
    }
}

impl std::error::Error for ConfigurationFault {}

#[cfg(test)]
mod tests;

//! The paper's configurations, and its numbers.
//!
//! Promise: every number that section 6.2 has in its text is here, as it is printed.
//! Never: adds to what the paper says.

mod compared;

#[cfg(test)]
pub(crate) use compared::of_means;
pub use compared::{Compared, FAR, Results, SEEDS, compare, run};

use crate::configuration::{CleanPages, ColdPages, Configuration, Load, Mix};
use crate::machine::Machine;

/// Pages of the paper's mbyte. Its own numbers tell: 262 megacycles are 64,000 pages from durable
/// memory, and 2.10 gigacycles are 64,000 pages from disk, for a database of 256 mbytes.
const MBYTE_PAGES: u64 = 250;

/// The paper's four configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// 256 mbytes of database; no durable memory.
    Small,
    /// 256 mbytes of database; 256 mbytes of conventional and 256 of durable memory.
    SmallDurable,
    /// 1.024 gbytes of database; no durable memory.
    Large,
    /// 1.024 gbytes of database; 307.2 mbytes of conventional and 204.8 of durable memory.
    LargeDurable,
}

impl Named {
    /// All of them, in the paper's order.
    pub const ALL: [Named; 4] =
        [Named::Small, Named::SmallDurable, Named::Large, Named::LargeDurable];

    /// How it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Named::Small => "small",
            Named::SmallDurable => "small-durable",
            Named::Large => "large",
            Named::LargeDurable => "large-durable",
        }
    }

    /// What it is.
    #[must_use]
    pub fn configuration(self) -> Configuration {
        let (database, durable) = match self {
            Named::Small => (256 * MBYTE_PAGES, 0),
            Named::SmallDurable => (256 * MBYTE_PAGES, 256 * MBYTE_PAGES),
            Named::Large => (1024 * MBYTE_PAGES, 0),
            Named::LargeDurable => (1024 * MBYTE_PAGES, 2048 * MBYTE_PAGES / 10),
        };
        Configuration {
            machine: Machine::PAPER,
            memory_pages: 512 * MBYTE_PAGES,
            durable_pages: durable,
            load: Load::Mix(Mix::paper(database)),
            cold_pages: ColdPages::ToDisk,
            clean_pages: CleanPages::Written,
            seed: 1,
        }
    }
}

//! What is measured: which stores, and which parts of the whole.
//!
//! Promise: a name stands for one store or one part; all of either are meant if none is named.
//! Never: measures.

use holdfast_bench_common::Failure;

use crate::effort::{FLAT_BRANCHES, THREADS};
use crate::peers::{self, Kind, OURS};
use crate::postgres;

/// A part of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Durable,
    Nondurable,
    Flat,
    Scanning,
    Restart,
    Repair,
    Media,
    Space,
    Orders,
    Eviction,
    Compression,
    Soak,
}

impl Part {
    const ALL: [Part; 12] = [
        Part::Durable,
        Part::Nondurable,
        Part::Flat,
        Part::Scanning,
        Part::Restart,
        Part::Repair,
        Part::Media,
        Part::Space,
        Part::Orders,
        Part::Eviction,
        Part::Compression,
        Part::Soak,
    ];

    fn name(self) -> &'static str {
        match self {
            Part::Durable => "durable",
            Part::Nondurable => "nondurable",
            Part::Flat => "flat",
            Part::Scanning => "scanning",
            Part::Restart => "restart",
            Part::Repair => "repair",
            Part::Media => "media",
            Part::Space => "space",
            Part::Orders => "orders",
            Part::Eviction => "eviction",
            Part::Compression => "compression",
            Part::Soak => "soak",
        }
    }
}

/// Parts that are measured of ours alone.
const OF_OURS: [Part; 7] = [
    Part::Flat,
    Part::Scanning,
    Part::Repair,
    Part::Media,
    Part::Orders,
    Part::Eviction,
    Part::Compression,
];

/// What is measured.
pub(crate) struct Choice {
    kinds: Vec<&'static Kind>,
    parts: Vec<Part>,
    has_postgres: bool,
}

impl Choice {
    /// The stores and parts of these names, all of either if none is named.
    pub(crate) fn of(names: Option<&str>) -> Result<Choice, Failure> {
        let (mut kinds, mut parts, mut has_postgres) = (Vec::new(), Vec::new(), false);
        for name in names.into_iter().flat_map(|names| names.split(',')) {
            match Part::ALL.into_iter().find(|part| part.name() == name) {
                Some(part) => parts.push(part),
                None if name == postgres::NAME => has_postgres = true,
                None => kinds.push(peers::known(name)?),
            }
        }
        if kinds.is_empty() && !has_postgres {
            kinds = peers::all().collect();
            has_postgres = true;
        }
        if parts.is_empty() {
            parts = Part::ALL.into();
        }
        Ok(Choice { kinds, parts, has_postgres })
    }

    /// The chosen stores.
    pub(crate) fn kinds(&self) -> &[&'static Kind] {
        &self.kinds
    }

    /// Whether PostgreSQL is chosen too, and a part that it is measured in.
    pub(crate) fn restarts_postgres(&self) -> bool {
        self.has_postgres && self.has(Part::Restart)
    }

    /// Whether a part is chosen.
    pub(crate) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    /// Whether a bank of so many branches is needed in a store.
    pub(crate) fn needs(&self, branches: u32, kind: &Kind) -> bool {
        let of_ours = || OF_OURS.into_iter().any(|part| self.has(part));
        self.has(Part::Durable)
            || (self.has(Part::Nondurable) && branches == THREADS[0])
            || (kind.name == OURS && branches == FLAT_BRANCHES && of_ours())
    }
}

#[cfg(test)]
mod tests;

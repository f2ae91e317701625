//! The parts of a run.
//!
//! Promise: a name stands for one part; all are meant if none is named.
//! Never: measures.

use holdfast_bench_common::Failure;
use holdfast_bench_common::place::Place;
use holdfast_bench_common::task::Task;
use holdfast_figures::{Chart, Figure, Panel};

use crate::{fastboot, nbd, pcache, plan, table, vdisk};

/// A part.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// Measures it; the folder is on the disk.
    pub(crate) measure: fn(&Task, &Place) -> Result<Measured, Failure>,
}

const ALL: [Part; 6] = [
    Part { name: "vdisk", measure: vdisk::measure },
    Part { name: "table", measure: table::measure },
    Part { name: "nbd", measure: nbd::measure },
    Part { name: "pcache", measure: pcache::measure },
    Part { name: "plan", measure: plan::measure },
    Part { name: "fastboot", measure: fastboot::measure },
];

/// What a part came to.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) figures: Vec<Figure>,
    pub(crate) panels: Vec<Panel>,
    pub(crate) charts: Vec<Chart>,
    /// What is to be known about the run.
    pub(crate) notes: Vec<String>,
}

impl Measured {
    /// Adds what another part came to.
    pub(crate) fn add(&mut self, other: Measured) {
        self.figures.extend(other.figures);
        self.panels.extend(other.panels);
        self.charts.extend(other.charts);
        self.notes.extend(other.notes);
    }
}

/// The parts of these names, all if none is named.
pub(crate) fn chosen(names: Option<&str>) -> Result<Vec<Part>, Failure> {
    let Some(names) = names else { return Ok(ALL.into()) };
    names.split(',').map(named).collect()
}

fn named(name: &str) -> Result<Part, Failure> {
    let known = || ALL.map(|part| part.name).join(", ");
    let found = ALL.into_iter().find(|part| part.name == name);
    found.ok_or_else(|| format!("{name} is none of {}", known()).into())
}

#[cfg(test)]
mod tests;

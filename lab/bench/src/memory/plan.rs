//! How many requests the planner simulates in a second of one core, and the numbers of the DM/6000
//! paper beside the planner's, with the paper's figures 3 and 4.
//!
//! Promise: what is compared with the paper is simulated in full by a quick run too: fewer pages
//! give other numbers.
//! Never: touches a disk.

mod speed;

use holdfast_bench_common::place::Place;
use holdfast_bench_common::task::Task;
use holdfast_bench_common::{Failure, output};
use holdfast_plan::paper::{Named, compare, run};
use holdfast_plan::{Effort, drawn};

use crate::part::Measured;

/// Measures the speed, and simulates what the paper did.
pub(crate) fn measure(task: &Task, _disk: &Place) -> Result<Measured, Failure> {
    let mut figures = speed::measure(task.effort(7, 2));
    let results = Named::ALL.map(|named| {
        run(named, Effort::FULL, |done, all| {
            output::progress(&format!("{}: {done} of {all} simulated", named.name()));
        })
    });
    let drawing = drawn::paper(&results, &compare(&results));
    figures.extend(drawing.figures);
    let (panels, charts) = (vec![speed::panel()], drawing.charts);
    Ok(Measured { figures, panels, charts, notes: Vec::new() })
}

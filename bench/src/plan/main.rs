//! `bench-plan`: how many requests the planner simulates in a second of one core, and the numbers
//! of the DM/6000 paper beside the planner's.
//!
//! Promise: writes `plan.json` and `plan.svg` into a folder, with the paper's figures 3 and 4.
//! Never: touches a disk otherwise.

mod speed;

use std::process::ExitCode;

use holdfast_bench_common::task::Task;
use holdfast_bench_common::{Failure, output};
use holdfast_figures::Figures;
use holdfast_plan::paper::{Named, compare, run};
use holdfast_plan::{Effort, drawn};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let task = Task::parse("bench-plan", &words);
    output::exit("bench-plan", task.and_then(|task| measure(&task)))
}

/// A quick run measures less often. What is compared with the paper is simulated in full by either:
/// fewer pages give other numbers.
fn measure(task: &Task) -> Result<(), Failure> {
    if task.only.is_some() {
        return Err("nothing of it has a name: leave out --only".into());
    }
    let mut figures = Figures::here("plan", "none", "none: a model acknowledges nothing");
    figures.figures = speed::measure(task.effort(7, 2));
    let results = Named::ALL.map(|named| {
        run(named, Effort::FULL, |done, all| {
            output::progress(&format!("{}: {done} of {all} simulated", named.name()));
        })
    });
    let drawing = drawn::paper(&results, &compare(&results));
    figures.figures.extend(drawing.figures);
    figures.write_with_charts(&task.out, &[speed::panel()], &drawing.charts)?;
    output::table(&figures);
    Ok(())
}
